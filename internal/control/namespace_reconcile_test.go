package control

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestNamespaceConditions(t *testing.T) {
	find := func(cs []condition, kind corev1.NamespaceConditionType) condition {
		for _, c := range cs {
			if c.kind == kind {
				return c
			}
		}
		t.Fatalf("no condition %s", kind)
		return condition{}
	}
	empty := namespaceConditions(nil, nil)
	if len(empty) != 5 {
		t.Fatalf("%d conditions", len(empty))
	}
	for _, c := range empty {
		if c.status != corev1.ConditionFalse {
			t.Errorf("an empty namespace has %s=%s", c.kind, c.status)
		}
	}
	left := []remains{
		{resource: "b.example.com", objects: 2, finalizers: map[string]int{"example.com/x": 2}},
		{resource: "as.", objects: 1, finalizers: map[string]int{"example.com/x": 1, "example.com/w": 1}},
	}
	cs := namespaceConditions(left, []error{errors.New("boom"), errors.New("bang")})
	for kind, want := range map[corev1.NamespaceConditionType]string{
		corev1.NamespaceContentRemaining:       "Some resources are remaining: as. has 1 resource instances, b.example.com has 2 resource instances",
		corev1.NamespaceFinalizersRemaining:    "Some content in the namespace has finalizers remaining: example.com/w in 1 resource instances, example.com/x in 3 resource instances",
		corev1.NamespaceDeletionContentFailure: "Failed to delete all resource types, 2 remaining: bang, boom",
	} {
		if c := find(cs, kind); c.message != want || c.status != corev1.ConditionTrue {
			t.Errorf("%s: got %s %q, want %q", kind, c.status, c.message, want)
		}
	}
}

func TestSetConditions(t *testing.T) {
	first, second := time.Unix(1000, 0), time.Unix(2000, 0)
	obj := map[string]any{}
	set := func(to []condition, now time.Time) []any {
		if err := setConditions(obj, to, now); err != nil {
			t.Fatal(err)
		}
		list, _, _ := unstructured.NestedSlice(obj, "status", "conditions")
		return list
	}
	list := set(namespaceConditions(nil, nil), first)
	again := set(namespaceConditions(nil, nil), second)
	if len(list) != 5 || len(again) != 5 ||
		again[0].(map[string]any)["lastTransitionTime"] != list[0].(map[string]any)["lastTransitionTime"] {
		t.Errorf("an unchanged condition got another time: %v", again[0])
	}
	changed := set(namespaceConditions([]remains{{resource: "a", objects: 1}}, nil), second)
	if changed[3].(map[string]any)["lastTransitionTime"] != second.UTC().Format(time.RFC3339) {
		t.Errorf("a changed condition kept its time: %v", changed[3])
	}
}
