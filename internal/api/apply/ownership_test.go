package apply

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// widgets is the kind that the load generator uses: 5 KB objects with a list of named items.
func widgets(t testing.TB) *catalog.Resource {
	t.Helper()
	return resource(t, "Widget",
		`{"type":"object","properties":{"spec":{"type":"object","required":["bucket"],"properties":{
		"bucket":{"type":"string"},"counter":{"type":"integer"},"mode":{"type":"string","default":"auto"},"replicas":{"type":"integer"},
		"items":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],
		"properties":{"name":{"type":"string"},"value":{"type":"string"},"weight":{"type":"integer","default":1}}}}}},
		"status":{"type":"object","properties":{"phase":{"type":"string"}}}}}`)
}

func resource(t testing.TB, kind, schema string) *catalog.Resource {
	t.Helper()
	var props apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal([]byte(schema), &props); err != nil {
		t.Fatal(err)
	}
	source := func() (*apiextensionsv1.JSONSchemaProps, error) { return &props, nil }
	r := &catalog.Resource{
		Group: "bench.example.com", Plural: "widgets", Kind: kind,
		Definition: catalog.Definition{Name: "widgets.bench.example.com"},
	}
	for _, name := range []string{"v1", "v2"} {
		r.Versions = append(r.Versions,
			&catalog.Version{
				Name: name, Served: true, Status: true, Source: source,
				Scale: &catalog.Scale{SpecReplicasPath: ".spec.replicas"},
			})
	}
	return r
}

func widget(counter int64) map[string]any {
	var items []any
	for k := range 30 {
		items = append(items,
			map[string]any{"name": fmt.Sprintf("item-%03d", k), "value": fmt.Sprintf("%032d", k), "weight": int64(1)})
	}
	return map[string]any{
		"apiVersion": "bench.example.com/v1", "kind": "Widget",
		"metadata": map[string]any{
			"name": "w-1", "namespace": "default", "labels": map[string]any{"app": "bench", "shard": "s1"},
		},
		"spec": map[string]any{"bucket": "b01", "counter": counter, "mode": "auto", "items": items},
	}
}

// stored returns obj as the store would return it.
func stored(obj map[string]any) map[string]any {
	obj = runtime.DeepCopyJSON(obj)
	meta := obj["metadata"].(map[string]any)
	meta["uid"], meta["creationTimestamp"], meta["generation"], meta["resourceVersion"] = "u-1", "2026-01-01T00:00:00Z",
		int64(1), "1"
	return obj
}

func own1(t testing.TB, r *catalog.Resource, subresource string) *Ownership {
	t.Helper()
	o, err := NewOwnership(r, r.Versions[0], subresource)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var day = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func entries(t *testing.T, obj map[string]any) string {
	t.Helper()
	var out []string
	for _, e := range obj["metadata"].(map[string]any)["managedFields"].([]any) {
		e := e.(map[string]any)
		raw, err := json.Marshal(e["fieldsV1"])
		if err != nil {
			t.Fatal(err)
		}
		sub, _ := e["subresource"].(string)
		out = append(out, fmt.Sprintf("%s %s %s%s %s", e["manager"], e["operation"], e["time"], sub, raw))
	}
	return strings.Join(out, "\n")
}

func TestStory(t *testing.T) {
	r := widgets(t)
	main, status := own1(t, r, ""), own1(t, r, "status")
	obj := map[string]any{"apiVersion": "bench.example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "x", "labels": map[string]any{"a": "1"}},
		"spec":     map[string]any{"bucket": "b", "items": []any{map[string]any{"name": "i", "weight": int64(1)}}}}
	step := func(desc string, err error, want string) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", desc, err)
		}
		if got := entries(t, obj); got != want {
			t.Fatalf("%s:\n%s\nwant\n%s", desc, got, want)
		}
		obj = stored(obj)
	}

	step("create", main.Update(nil, obj, "alice", day),
		`alice Update 2026-01-01T00:00:00Z {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{".":{},"f:bucket":{},"f:items":{".":{},"k:{\"name\":\"i\"}":{".":{},"f:name":{},"f:weight":{}}}}}`)

	live := obj
	obj = stored(obj)
	obj["spec"].(map[string]any)["bucket"] = "c"
	step("update by another", main.Update(live, obj, "bob", day.Add(time.Hour)),
		`alice Update 2026-01-01T00:00:00Z {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{".":{},"f:items":{".":{},"k:{\"name\":\"i\"}":{".":{},"f:name":{},"f:weight":{}}}}}
bob Update 2026-01-01T01:00:00Z {"f:spec":{"f:bucket":{}}}`)

	live = obj
	obj = stored(obj)
	obj["status"] = map[string]any{"phase": "up"}
	obj["metadata"].(map[string]any)["labels"] = map[string]any{"a": "2"} // the status endpoint resets it
	step("status", status.Update(live, obj, "ctrl", day.Add(2*time.Hour)),
		`alice Update 2026-01-01T00:00:00Z {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{".":{},"f:items":{".":{},"k:{\"name\":\"i\"}":{".":{},"f:name":{},"f:weight":{}}}}}
bob Update 2026-01-01T01:00:00Z {"f:spec":{"f:bucket":{}}}
ctrl Update 2026-01-01T02:00:00Zstatus {"f:status":{".":{},"f:phase":{}}}`)

	live = obj
	obj = stored(obj)
	before := entries(t, obj)
	step("nothing changes", main.Update(live, obj, "dave", day.Add(3*time.Hour)), before)

	live = obj
	applied := map[string]any{
		"apiVersion": "bench.example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "x"},
		"spec": map[string]any{"bucket": "d"},
	}
	_, err := main.Apply(live, applied, "erin", false, day.Add(4*time.Hour))
	if want := `Apply failed with 1 conflict: conflict with "bob" using bench.example.com/v1: .spec.bucket`; !apierrors.IsConflict(err) || err.Error() != want {
		t.Fatalf("conflict: %v, want %s", err, want)
	}
	obj, err = main.Apply(live, applied, "erin", true, day.Add(4*time.Hour))
	step("forced apply", err, `erin Apply 2026-01-01T04:00:00Z {"f:spec":{"f:bucket":{}}}
alice Update 2026-01-01T00:00:00Z {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{".":{},"f:items":{".":{},"k:{\"name\":\"i\"}":{".":{},"f:name":{},"f:weight":{}}}}}
ctrl Update 2026-01-01T02:00:00Zstatus {"f:status":{".":{},"f:phase":{}}}`)

	live = obj
	before = entries(t, obj)
	obj, err = main.Apply(live, applied, "erin", false, day.Add(5*time.Hour))
	step("the same again", err, before)
	if !equal(obj, live) {
		t.Fatal("applying the same again changes the object")
	}

	applied["spec"] = map[string]any{"counter": int64(1)}
	live = obj
	obj, err = main.Apply(live, applied, "erin", false, day.Add(6*time.Hour))
	if _, ok := obj["spec"].(map[string]any)["bucket"]; ok || err != nil {
		t.Fatalf("field that is applied no more stays: %v, %v", obj["spec"], err)
	}

	live = obj
	obj = stored(obj)
	obj["metadata"].(map[string]any)["managedFields"] = []any{}
	if err := main.Update(live, obj, "alice", day); err != nil {
		t.Fatal(err)
	}
	if _, ok := obj["metadata"].(map[string]any)["managedFields"]; ok {
		t.Fatal("managedFields not reset")
	}
}

// TestShortWayIsTaken keeps the common writes from falling back to the long way unnoticed.
func TestShortWayIsTaken(t *testing.T) {
	o := own1(t, widgets(t), "")
	obj := widget(1)
	if !o.updateShort(nil, obj, "bench", day) {
		t.Error("create")
	}
	live := stored(obj)
	next := stored(obj)
	next["spec"].(map[string]any)["counter"] = int64(2)
	next["spec"].(map[string]any)["items"] = append(next["spec"].(map[string]any)["items"].([]any)[1:],
		map[string]any{"name": "new"})
	if !o.updateShort(live, next, "other", day) {
		t.Error("update")
	}
	applied, ok := o.applyShort(stored(next), widget(3), "bench", true, day)
	if !ok {
		t.Fatal("apply")
	}
	if _, ok := o.applyShort(stored(applied), widget(4), "bench", false, day); !ok {
		t.Error("apply of other values")
	}
}

// TestShortWayIsTakenFromNull checks that built-in kinds with null for unset lists and times take the short way, too,
// with the result of the long way.
func TestShortWayIsTakenFromNull(t *testing.T) {
	r := resource(t, "Pod", `{"type":"object","properties":{
		"spec":{"type":"object","properties":{"nodeName":{"type":"string"},
			"containers":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
				"items":{"type":"object","properties":{"name":{"type":"string"},"image":{"type":"string"},"resources":{"type":"object"}}}}}},
		"status":{"type":"object","properties":{"startTime":{"type":"string","format":"date-time"}}}}}`)
	r.Versions[0].New = func() any { return &corev1.Pod{} }
	o := own1(t, r, "")
	pod := func(containers any) map[string]any {
		return map[string]any{
			"apiVersion": "bench.example.com/v1", "kind": "Pod", "metadata": map[string]any{"name": "p"},
			"spec": map[string]any{"containers": containers}, "status": map[string]any{},
		}
	}
	full := []any{map[string]any{"name": "c", "image": "i", "resources": map[string]any{}}}
	for name, containers := range map[string]any{"null": nil, "none": []any{}, "one": full} {
		short, long := pod(containers), pod(containers)
		if !o.updateShort(nil, short, "kubelet", day) {
			t.Errorf("create with %s: the long way", name)
		}
		if err := o.updateLong(nil, long, "kubelet", day); err != nil {
			t.Fatal(err)
		}
		if !equal(short, long) {
			t.Errorf("create with %s: %v, want %v", name, short, long)
		}
	}
	live := stored(pod(full))
	if err := o.Update(nil, live, "kubelet", day); err != nil {
		t.Fatal(err)
	}
	live = stored(live)
	next := stored(live)
	next["spec"].(map[string]any)["containers"] = nil
	if !o.updateShort(live, next, "other", day) {
		t.Error("update to null: the long way")
	}
}

func TestTooManyUpdaters(t *testing.T) {
	o := own1(t, widgets(t), "")
	live := map[string]any{
		"apiVersion": "bench.example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "x"},
		"spec": map[string]any{"bucket": "b"},
	}
	if err := o.Update(nil, live, "m0", day); err != nil {
		t.Fatal(err)
	}
	live = stored(live)
	for i := range 14 {
		obj := stored(live)
		meta := obj["metadata"].(map[string]any)
		labels, _ := meta["labels"].(map[string]any)
		if labels == nil {
			labels = map[string]any{}
			meta["labels"] = labels
		}
		labels[fmt.Sprintf("l%02d", i)] = "x"
		if err := o.Update(live, obj, fmt.Sprintf("m%d", i+1), day.Add(time.Duration(i+1)*time.Hour)); err != nil {
			t.Fatal(err)
		}
		live = stored(obj)
	}
	all := live["metadata"].(map[string]any)["managedFields"].([]any)
	if oldest := all[0].(map[string]any); len(all) != maxUpdaters || oldest["manager"] != ancientChanges ||
		oldest["time"] != "2026-01-01T05:00:00Z" {
		t.Fatalf("%d entries, the oldest %v at %v", len(all), oldest["manager"], oldest["time"])
	}
}

func TestScale(t *testing.T) {
	r := widgets(t)
	main := own1(t, r, "")
	obj := map[string]any{
		"apiVersion": "bench.example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "x"},
		"spec": map[string]any{"bucket": "b", "replicas": int64(1)},
	}
	if err := main.Update(nil, obj, "alice", day); err != nil {
		t.Fatal(err)
	}
	obj = stored(obj)
	shown, err := ScaleEntries(r, r.Versions[0], obj)
	if err != nil {
		t.Fatal(err)
	}
	scale := func(replicas int64) map[string]any {
		return map[string]any{
			"apiVersion": "autoscaling/v1", "kind": "Scale",
			"metadata": map[string]any{"name": "x", "uid": "u-1", "managedFields": shown},
			"spec":     map[string]any{"replicas": replicas},
		}
	}
	live, next := scale(1), scale(3)
	if err := NewScaleOwnership().Update(live, next, "hpa", day.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := TakeScaleEntries(r, r.Versions[0], obj, next); err != nil {
		t.Fatal(err)
	}
	want := `alice Update 2026-01-01T00:00:00Z {"f:spec":{".":{},"f:bucket":{}}}`
	if got := entries(t, obj); !strings.Contains(got, want) || !strings.Contains(got, `hpa Update`) ||
		!strings.Contains(got, `scale {"f:spec":{"f:replicas":{}}}`) {
		t.Errorf("%s, want %s and hpa as owner of replicas", got, want)
	}
}

func TestKeepTimes(t *testing.T) {
	o := own1(t, widgets(t), "")
	live := widget(1)
	if err := o.Update(nil, live, "a", day); err != nil {
		t.Fatal(err)
	}
	live = stored(live)
	for name, change := range map[string]func(obj map[string]any) bool{
		"time only": func(map[string]any) bool { return true },
		"spec": func(obj map[string]any) bool {
			obj["spec"].(map[string]any)["counter"] = int64(9)
			return false
		},
		"label": func(obj map[string]any) bool {
			obj["metadata"].(map[string]any)["labels"] = map[string]any{}
			return false
		},
		"owner": func(obj map[string]any) bool {
			obj["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any)["manager"] = "b"
			return false
		},
	} {
		obj := stored(live)
		obj["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any)["time"] = "2027-01-01T00:00:00Z"
		same := change(obj)
		renewed := KeepTimes(live, obj)
		if equal(live, obj) != same {
			t.Errorf("%s: %v", name, obj["metadata"])
		}
		if want := name == "spec" || name == "label"; renewed != want {
			t.Errorf("%s: renewed is %v", name, renewed)
		}
	}
}

func TestManagerName(t *testing.T) {
	for _, c := range [][3]string{
		{"given", "kubectl/v1.36", "given"}, {"", "kubectl/v1.36 (linux/amd64)", "kubectl"},
		{"", "Mozilla/5.0", "Mozilla"}, {"", "", ""},
		{"", "a\x00b\u200bc", "abc"}, {"", strings.Repeat("é", 100), strings.Repeat("é", 64)},
	} {
		if got := ManagerName(c[0], c[1]); got != c[2] {
			t.Errorf("%q, %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
