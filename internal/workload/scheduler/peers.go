package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// peers selects the pods to spread a pod from if it has no topology spread constraints: the pods of its services and
// its controller. Without either it selects everything, which means no spreading.
func (s *scheduler) peers(pod *corev1.Pod) labels.Selector {
	if len(pod.Spec.TopologySpreadConstraints) > 0 {
		return nil
	}
	all := labels.Set{}
	for _, service := range cluster.Services.ReadAll(s.index, pod.Namespace) {
		wants := service.Spec.Selector
		if wants != nil && labels.SelectorFromSet(wants).Matches(labels.Set(pod.Labels)) {
			all = labels.Merge(all, wants)
		}
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return labels.SelectorFromSet(all)
	}
	var more *metav1.LabelSelector
	switch schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind) {
	case cluster.ReplicationControllers.GroupVersionKind():
		if rc := cluster.ReplicationControllers.Read(s.index, pod.Namespace, owner.Name); rc != nil {
			return labels.SelectorFromSet(labels.Merge(all, rc.Spec.Selector))
		}
	case cluster.ReplicaSets.GroupVersionKind():
		if set := cluster.ReplicaSets.Read(s.index, pod.Namespace, owner.Name); set != nil {
			more = set.Spec.Selector
		}
	case cluster.StatefulSets.GroupVersionKind():
		if set := cluster.StatefulSets.Read(s.index, pod.Namespace, owner.Name); set != nil {
			more = set.Spec.Selector
		}
	}
	if more == nil {
		return labels.SelectorFromSet(all)
	}
	return labels.SelectorFromSet(all).Add(requirements(selectorOf(more))...)
}
