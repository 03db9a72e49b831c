package control

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestJudge covers the cases of Kubernetes' garbage collector (attemptToDeleteItem and its integration tests).
func TestJudge(t *testing.T) {
	const foreground, orphan = metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents
	refs := func(states ...ownerState) (out []owned) {
		for i, s := range states {
			out = append(out, owned{string(rune('a' + i)), s})
		}
		return out
	}
	for name, c := range map[string]struct {
		subject
		want verdict
	}{
		"no owner":                 {subject{}, verdict{}},
		"no owner, has dependents": {subject{dependents: 3, blocking: 3}, verdict{}},
		"owner is there":           {subject{owners: refs(solid)}, verdict{}},
		"owner is gone": {subject{owners: refs(dangling)},
			verdict{remove: metav1.DeletePropagationBackground}},
		"all owners are gone": {subject{owners: refs(dangling, dangling)},
			verdict{remove: metav1.DeletePropagationBackground}},
		"one owner of two is gone": {subject{owners: refs(dangling, solid)},
			verdict{unlink: []string{"a"}}},
		"one waits, one is there": {subject{owners: refs(waiting, solid), dependents: 1},
			verdict{unlink: []string{"a"}}},
		"one waits, one is gone, one is there": {subject{owners: refs(waiting, dangling, solid)},
			verdict{unlink: []string{"b", "a"}}},
		"owner waits": {subject{owners: refs(waiting)},
			verdict{remove: metav1.DeletePropagationBackground}},
		"owner waits, has dependents": {subject{owners: refs(waiting), dependents: 1},
			verdict{remove: metav1.DeletePropagationForeground}},
		"owner waits, in a circle": {subject{owners: refs(waiting), dependents: 1, circular: true},
			verdict{unblock: true, remove: metav1.DeletePropagationForeground}},
		"one waits, one is gone, has dependents": {subject{owners: refs(waiting, dangling), dependents: 1},
			verdict{remove: metav1.DeletePropagationForeground}},
		"owner is gone, was made to orphan": {
			subject{owners: refs(dangling), finalizers: []string{"x/y", orphan}},
			verdict{remove: metav1.DeletePropagationOrphan},
		},
		"owner is gone, was made to wait": {subject{owners: refs(dangling), finalizers: []string{foreground}},
			verdict{remove: metav1.DeletePropagationForeground}},
		"goes, held by somebody else": {
			subject{deleting: true, finalizers: []string{"x/y"}, owners: refs(dangling)}, verdict{},
		},
		"goes, orphans first": {
			subject{deleting: true, finalizers: []string{orphan}, dependents: 2, blocking: 2}, verdict{orphan: true},
		},
		"goes, orphans nobody": {subject{deleting: true, finalizers: []string{orphan}},
			verdict{orphan: true}},
		"goes, waits for blocking dependents": {
			subject{deleting: true, finalizers: []string{foreground}, dependents: 2, blocking: 1}, verdict{hurry: true},
		},
		"goes, does not wait for other dependents": {
			subject{deleting: true, finalizers: []string{foreground, "x/y"}, dependents: 2}, verdict{release: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(c.subject); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestReferenceLists(t *testing.T) {
	ref := func(uid string, block any) map[string]any {
		m := map[string]any{"uid": uid}
		if block != nil {
			m["blockOwnerDeletion"] = block
		}
		return m
	}
	in := []any{ref("a", true), ref("b", nil), ref("a", false), ref("c", true)}
	if got, want := withoutOwners(in, []string{"a", "z"}),
		[]any{ref("b", nil), ref("c", true)}; !reflect.DeepEqual(got, want) {
		t.Errorf("without a: %v", got)
	}
	if got, want := withoutBlocking(in),
		[]any{ref("a", false), ref("b", nil), ref("a", false), ref("c", false)}; !reflect.DeepEqual(got, want) {
		t.Errorf("not blocking: %v", got)
	}
	if in[0].(map[string]any)["blockOwnerDeletion"] != true {
		t.Error("the references that it was made of have changed")
	}
}
