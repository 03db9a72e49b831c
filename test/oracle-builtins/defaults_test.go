package oraclebuiltins

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"sigs.k8s.io/randfill"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// TestDefaults compares the JSON of random objects after kube's defaulting and after ours.
func TestDefaults(t *testing.T) {
	t.Parallel()
	for _, r := range kinds.Resources() {
		if r.Group == "apiextensions.k8s.io" {
			continue
		}
		for _, v := range r.Versions {
			t.Run(r.Group+"/"+v.Name+"/"+r.Kind, func(t *testing.T) {
				t.Parallel()
				for seed := range int64(100) {
					compareDefaults(t, r, v, seed)
					if t.Failed() {
						return
					}
				}
			})
		}
	}
}

func compareDefaults(t *testing.T, r *catalog.Resource, v *catalog.Version, seed int64) {
	t.Helper()
	doc := randomObject(t, r, v, seed)
	theirs, err := legacyscheme.Scheme.New(schema.GroupVersionKind{Group: r.Group, Version: v.Name, Kind: r.Kind})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(doc, theirs); err != nil {
		t.Fatal(err)
	}
	legacyscheme.Scheme.Default(theirs)
	want := tree(t, marshal(t, theirs))

	got := tree(t, doc)
	rules := r.StrategyFor(v)
	if unknown, err := rules.Decode(got); err != nil || len(unknown) > 0 {
		t.Fatalf("seed %d: %v %q", seed, err, unknown)
	}
	if rules.Default != nil {
		rules.Default(got)
	}
	fromConversion(r.Kind, got, want)
	// Convert it through the Go type: empty maps do not matter.
	typed := v.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got, typed); err != nil {
		t.Fatal(err)
	}
	if diff := difference("", tree(t, marshal(t, typed)), want); len(diff) > 0 {
		t.Errorf("seed %d:\n%s", seed, strings.Join(diff, "\n"))
	}
}

// fromConversion applies to want kube's changes in the conversion to its internal form and back. We make these changes
// as defaults.
func fromConversion(kind string, got, want map[string]any) {
	fromPodConversion(got, want)
	switch kind {
	case "Secret":
		want["data"], want["stringData"] = got["data"], nil
	case "DaemonSet":
		meta := want["metadata"].(map[string]any)
		annotations, _ := meta["annotations"].(map[string]any)
		if annotations == nil {
			annotations = map[string]any{}
		}
		if annotations["deprecated.daemonset.template.generation"] == nil {
			annotations["deprecated.daemonset.template.generation"] = "0"
		}
		meta["annotations"] = annotations
	case "StatefulSet":
		spec := want["spec"].(map[string]any)
		claims, _ := spec["volumeClaimTemplates"].([]any)
		for _, c := range claims {
			claim := c.(map[string]any)
			for key, v := range map[string]any{"kind": "PersistentVolumeClaim", "apiVersion": "v1"} {
				claim[key] = v
			}
		}
	}
}

// fromPodConversion: fields with an older name have both.
func fromPodConversion(got, want map[string]any) {
	for name, v := range want {
		have, _ := got[name].(map[string]any)
		switch below := v.(type) {
		case map[string]any:
			if below["schedulerName"] != nil && have != nil {
				below["serviceAccount"], below["serviceAccountName"] = have["serviceAccount"],
					have["serviceAccountName"]
			}
			if have != nil {
				fromPodConversion(have, below)
			}
		}
		switch name {
		case "podIP", "podIPs", "podCIDR", "podCIDRs":
			want[name] = got[name]
		}
	}
	for _, name := range []string{"podIP", "podCIDR"} {
		if got[name] != nil {
			want[name], want[name+"s"] = got[name], got[name+"s"]
		}
	}
}

// randomObject returns the JSON of a random object of a version, with few fields, so that many defaults apply.
func randomObject(t *testing.T, r *catalog.Resource, v *catalog.Version, seed int64) []byte {
	t.Helper()
	typed := v.New()
	filler(seed).Fill(typed)
	value := reflect.ValueOf(typed).Elem()
	value.FieldByName("Kind").SetString(r.Kind)
	value.FieldByName("APIVersion").SetString(r.APIVersion(v))
	return marshal(t, typed)
}

func filler(seed int64) *randfill.Filler {
	second := func(c randfill.Continue) time.Time { return time.Unix(c.Int63n(4e9), 0).UTC() }
	words := []string{"", "", "a", "nginx", "nginx:latest", "x.io/y:v1", "ClusterIP", "NodePort", "LoadBalancer",
		"Container", "ClientIP", "None", "RollingUpdate", "User", "ExactCount"}
	return randfill.NewWithSeed(seed).NilChance(.6).NumElements(0, 3).MaxDepth(14).Funcs(
		func(s *string, c randfill.Continue) { *s = words[c.Intn(len(words))] },
		func(v *metav1.Time, c randfill.Continue) { v.Time = second(c) },
		func(v *metav1.MicroTime, c randfill.Continue) { v.Time = second(c) },
		func(v *metav1.FieldsV1, c randfill.Continue) { v.Raw = []byte(`{"f:x":{}}`) },
		func(v *runtime.RawExtension, c randfill.Continue) { v.Raw = []byte(`{"kind":"X"}`) },
		func(v *types.UID, c randfill.Continue) { *v = "u" },
		func(v *int32, c randfill.Continue) { *v = int32(c.Intn(3)) },
		func(v *int64, c randfill.Continue) { *v = int64(c.Intn(3)) },
		func(v *resource.Quantity, c randfill.Continue) {
			// integers, thousandths, and millionths, which some fields round
			*v = *resource.NewScaledQuantity(int64(c.Intn(9)), resource.Scale(-3*c.Intn(3)))
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			*v = []intstr.IntOrString{{}, intstr.FromInt32(7), intstr.FromString("x"), intstr.FromString("")}[c.Intn(4)]
		},
	)
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func tree(t *testing.T, data []byte) map[string]any {
	t.Helper()
	v, err := codec.DecodeJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}

// difference lists the places where two decoded JSON values differ, at most ten.
func difference(path string, got, want any) []string {
	g, gok := got.(map[string]any)
	w, wok := want.(map[string]any)
	var out []string
	if gok && wok {
		keys := map[string]bool{}
		for k := range g {
			keys[k] = true
		}
		for k := range w {
			keys[k] = true
		}
		for k := range keys {
			out = append(out, difference(path+"."+k, g[k], w[k])...)
		}
		slices.Sort(out)
		return out[:min(10, len(out))]
	}
	gl, gok := got.([]any)
	wl, wok := want.([]any)
	if gok && wok && len(gl) == len(wl) {
		for i := range gl {
			out = append(out, difference(fmt.Sprintf("%s[%d]", path, i), gl[i], wl[i])...)
		}
		return out[:min(10, len(out))]
	}
	if !reflect.DeepEqual(got, want) {
		return []string{fmt.Sprintf("%s: got %v, want %v", path, brief(got), brief(want))}
	}
	return nil
}

func brief(v any) string {
	data, _ := json.Marshal(v)
	return string(data[:min(200, len(data))])
}
