package pod

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// Refuses returns why the kubelet of a node, which has taken the pods others, does not take another one: the pod's
// status.reason and what is to be said of it, "" and "" if it does take it.
type Refuses func(pod *corev1.Pod, node *corev1.Node, others []*corev1.Pod) (reason, message string)

// admission has kubelets refuse what their nodes have no room for. A scheduler sees to that, so only pods are looked at
// that came to their node without one, and those with ports of the node, which two schedulers may give away at once.
type admission struct {
	*cluster.Cluster
	refuses Refuses
	mu      sync.Mutex
	// taken are the pods of these that a kubelet has taken. Their status, which says so, may not be seen yet.
	taken map[types.UID]bool // guarded by mu
}

// refused returns why its kubelet does not take a pod, "" and "" if it does or has.
func (a *admission) refused(pod *corev1.Pod) (reason, message string) {
	if pod.Status.StartTime != nil || pod.DeletionTimestamp != nil || over(pod) ||
		isScheduled(pod) && !hasHostPorts(pod) {
		return "", ""
	}
	node := cluster.Nodes.Get(a.Cluster, "", pod.Spec.NodeName)
	if node == nil || len(node.Status.Allocatable) == 0 { // a client has just made it, and not said what it has
		return "", ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.taken[pod.UID] {
		return "", ""
	}
	var others []*corev1.Pod
	for _, other := range a.PodsOn(pod.Spec.NodeName) {
		if other.UID != pod.UID && !over(other) &&
			(other.Status.StartTime != nil || isScheduled(other) && !isScheduled(pod) || a.taken[other.UID]) {
			others = append(others, other)
		}
	}
	if reason, message = a.refuses(pod, node, others); reason == "" {
		a.taken[pod.UID] = true
	}
	return reason, message
}

// forget is called when a pod is gone.
func (a *admission) forget(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.taken, uid)
}

func isScheduled(pod *corev1.Pod) bool {
	c := cluster.Condition(&pod.Status, corev1.PodScheduled)
	return c != nil && c.Status == corev1.ConditionTrue
}

func hasHostPorts(pod *corev1.Pod) bool {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			for _, p := range containers[i].Ports {
				if p.HostPort > 0 {
					return true
				}
			}
		}
	}
	return false
}

// refuse is the step of a pod that its kubelet does not take.
func refuse(pod *corev1.Pod, now time.Time, reason, message string) step {
	s := pod.Status.DeepCopy()
	s.Phase, s.Reason, s.Message = corev1.PodFailed, reason, "Pod was rejected: "+message
	s.StartTime, s.ObservedGeneration = &metav1.Time{Time: now}, pod.Generation
	return step{status: s, changed: true, events: []event{{Event: cluster.Event{
		Type: corev1.EventTypeWarning, Reason: reason, Message: message,
	}}}}
}
