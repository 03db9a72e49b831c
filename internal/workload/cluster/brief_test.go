package cluster

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// A brief is the pod without what no set looks at; pods of a set share their owners. One whose containers have
// restarted is not told in brief.
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
	briefOf := func() *brief {
		data, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		e, err := watchcache.NewEntry("default/p", data, 5)
		if err != nil {
			t.Fatal(err)
		}
		return newBrief(e)
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
	if got == nil || !equality.Semantic.DeepEqual(got.Pod, want) {
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
