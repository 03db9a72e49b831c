package oraclebuiltins

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// TestStoredBudgets reads PodDisruptionBudgets of both versions like kube: empty selectors have opposite meanings.
func TestStoredBudgets(t *testing.T) {
	t.Parallel()
	var kind *catalog.Resource
	for _, r := range kinds.Resources() {
		if r.Kind == "PodDisruptionBudget" {
			kind = r
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	keys, operators := []string{"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match", "a"},
		[]string{"Exists", "DoesNotExist"}
	for _, version := range []string{"v1beta1", "v1"} {
		for range 500 {
			spec := map[string]any{"minAvailable": 1}
			if random.IntN(10) > 0 {
				selector := map[string]any{}
				if random.IntN(3) == 0 {
					selector["matchLabels"] = map[string]string{"x": "y"}
				}
				var expressions []any
				for range random.IntN(3) {
					expressions = append(expressions,
						map[string]string{"key": keys[random.IntN(2)], "operator": operators[random.IntN(2)]})
				}
				selector["matchExpressions"] = expressions
				spec["selector"] = selector
			}
			stored := marshal(t,
				map[string]any{
					"apiVersion": "policy/" + version, "kind": "PodDisruptionBudget",
					"metadata": map[string]any{"name": "a"}, "spec": spec,
				})
			want := kubeBudget(t, stored, version)
			doc, err := kind.Form.Decode(stored)
			if err != nil {
				t.Fatal(err)
			}
			obj := tree(t, doc)
			var got policyv1.PodDisruptionBudget
			if err := json.Unmarshal(marshal(t, obj), &got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(trimmed(t, got.Spec), trimmed(t, want.Spec)) || got.APIVersion != "policy/v1" {
				t.Fatalf("stored %s\ngot  %s\nwant %s", bytes.TrimSpace(stored), marshal(t, got.Spec),
					marshal(t, want.Spec))
			}
		}
	}
}

func trimmed(t *testing.T, spec policyv1.PodDisruptionBudgetSpec) any {
	return tree(t, marshal(t, spec))
}

// kubeBudget decodes a stored object with kube's conversions.
func kubeBudget(t *testing.T, stored []byte, version string) *policyv1.PodDisruptionBudget {
	t.Helper()
	gv := schema.GroupVersion{Group: "policy", Version: version}
	in, err := legacyscheme.Scheme.New(gv.WithKind("PodDisruptionBudget"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(stored, in); err != nil {
		t.Fatal(err)
	}
	hub, err := legacyscheme.Scheme.UnsafeConvertToVersion(in,
		schema.GroupVersion{Group: "policy", Version: "__internal"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := legacyscheme.Scheme.UnsafeConvertToVersion(hub, policyv1.SchemeGroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	return out.(*policyv1.PodDisruptionBudget)
}
