package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// TestBrief checks that a brief is the pod without fields that controllers do not read, and that pods of a set share
// their owners. A pod with container restarts has no brief.
func TestBrief(t *testing.T) {
	t.Parallel()
	yes, at := true, metav1.NewTime(time.Unix(1_700_000_000, 0).Local())
	whole := corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "p", UID: "u", CreationTimestamp: at, DeletionTimestamp: &at,
			Labels: map[string]string{"app": "web"}, Annotations: map[string]string{
				corev1.PodDeletionCost: "7", "other": "x",
			},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "ru", Controller: &yes},
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec: corev1.PodSpec{NodeName: "node-0", Containers: []corev1.Container{{Name: "c"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at},
			},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "c"}},
		},
	}
	briefOf := func() *corev1.Pod {
		data, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		e, err := watchcache.NewEntry("default/p", data, 5)
		if err != nil {
			t.Fatal(err)
		}
		if b := newBrief(e); b != nil {
			return b.pod(e)
		}
		return nil
	}
	got := briefOf()
	want := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "p", UID: "u", CreationTimestamp: at, DeletionTimestamp: &at,
			Labels: whole.Labels, Annotations: map[string]string{corev1.PodDeletionCost: "7"},
			OwnerReferences: whole.OwnerReferences,
		},
		Spec: corev1.PodSpec{NodeName: "node-0"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: whole.Status.Conditions[1:],
		},
	}
	if got == nil || !equality.Semantic.DeepEqual(*got, want) {
		t.Fatalf("in brief it is %+v", got)
	}
	if other := briefOf(); &other.OwnerReferences[0] != &got.OwnerReferences[0] {
		t.Error("pods of one set have owners of their own")
	}
	whole.Status.ContainerStatuses[0].RestartCount = 1
	if briefOf() != nil {
		t.Error("a pod that has restarted is told in brief")
	}
}

// TestCount checks that Count counts the pods of a controller, unless one is to be adopted or released.
func TestCount(t *testing.T) {
	t.Parallel()
	selects := labels.SelectorFromSet(labels.Set{"app": "web"})
	template := labels.SelectorFromSet(labels.Set{"app": "web", "tier": "a"})
	const (
		web, ready = `{"app":"web","tier":"a"}`, `{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}`
		ours       = `"ownerReferences":[{"kind":"ReplicaSet","name":"r","uid":"ru","controller":true}],`
	)
	pods := []string{ // meta, labels, status
		ours, web, ready,
		ours, web, `{"phase":"Pending"}`,
		ours, web, `{"phase":"Running","containerStatuses":[{"name":"c","restartCount":2}],
			"conditions":[{"type":"Ready","status":"True"}]}`,
		ours + `"deletionTimestamp":"2026-01-01T00:00:00Z",`, web, ready,
		ours, `{"app":"other"}`, `{"phase":"Failed"}`,
		"", `{"app":"other"}`, ready,
	}
	for _, test := range []struct {
		name string
		more []string
		ok   bool
	}{
		{"simple", nil, true},
		{"of another", []string{strings.ReplaceAll(ours, `"ru"`, `"other"`), web, ready}, true},
		{"to adopt", []string{"", web, ready}, false},
		{"to release", []string{ours, `{"app":"other"}`, ready}, false},
		{"not as the template", []string{ours, `{"app":"web"}`, ready}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := &owned{of: map[string]ownerKey{}, by: map[ownerKey][]*watchcache.Entry{}}
			for at := range slices.Chunk(slices.Concat(pods, test.more), 3) {
				name := fmt.Sprint("p", len(c.of))
				e, err := watchcache.NewEntry("default/"+name, fmt.Appendf(nil,
					`{"apiVersion":"v1","kind":"Pod","metadata":{%s"labels":%s,"name":%q},"status":%s}`, at[0], at[1],
					name, at[2]), 5)
				if err != nil {
					t.Fatal(err)
				}
				c.put(e)
			}
			x := &Index{collections: map[string]*owned{Pods.Prefix: c}}
			n, ok := x.Count("default", "ru", selects, template)
			if ok != test.ok || ok && n != (PodCount{Active: 3, Ready: 2, Terminating: 1}) {
				t.Errorf("%+v %v", n, ok)
			}
		})
	}
}
