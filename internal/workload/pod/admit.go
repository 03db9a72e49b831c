package pod

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// Refuses returns why the kubelet of a node that runs the pods others rejects another pod: status.reason and the
// message, or "" and "" if the kubelet accepts it.
type Refuses func(pod *corev1.Pod, node *corev1.Node, others []*corev1.Pod) (reason, message string)

// admission makes kubelets reject pods that their nodes have no room for. A scheduler checks this before it binds, so
// admission checks only pods that were bound without one, and pods with host ports, which two schedulers may assign
// concurrently.
type admission struct {
	*cluster.Cluster
	refuses Refuses
	mu      sync.Mutex
	// taken holds the pods that their kubelet has accepted. The view may not yet show the status that says so.
	taken map[types.UID]bool // guarded by mu
	// granted holds the pods with resources that a resize was granted, until their status shows them.
	granted map[types.UID]*corev1.Pod // guarded by mu
}

// refused returns why its kubelet rejects a pod; "" and "" if the kubelet accepts it or has already accepted it.
func (a *admission) refused(pod *corev1.Pod) (reason, message string) {
	if pod.Status.StartTime != nil || pod.DeletionTimestamp != nil || over(pod) ||
		isScheduled(pod) && !hasHostPorts(pod) {
		return "", ""
	}
	node := cluster.Nodes.Get(a.Cluster, "", pod.Spec.NodeName)
	if node == nil || len(node.Status.Allocatable) == 0 { // a client has just created it, without allocatable resources
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
	delete(a.granted, uid)
}

// fits returns why the node of a pod has no room for the resources of its spec, and grants them if it has.
func (a *admission) fits(pod *corev1.Pod) (why string) {
	node := cluster.Nodes.Get(a.Cluster, "", pod.Spec.NodeName)
	if node == nil || len(node.Status.Allocatable) == 0 {
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var others []*corev1.Pod
	for _, other := range a.PodsOn(pod.Spec.NodeName) {
		if other.UID != pod.UID && !over(other) && (other.Status.StartTime != nil || a.taken[other.UID]) {
			others = append(others, a.allocated(other))
		}
	}
	wanted := *pod
	wanted.Status = corev1.PodStatus{}
	if _, why = a.refuses(&wanted, node, others); why == "" {
		a.granted[pod.UID] = &wanted
	}
	return why
}

// allocated returns a pod with the resources that its kubelet has allocated in its spec. It needs the lock.
func (a *admission) allocated(pod *corev1.Pod) *corev1.Pod {
	if granted := a.granted[pod.UID]; granted != nil {
		if granted.Generation == pod.Generation && conditionOf(&pod.Status, corev1.PodResizeInProgress) == nil {
			delete(a.granted, pod.UID) // its status shows the resources, or will at the next look
		}
		return granted
	}
	out := *pod
	out.Status = corev1.PodStatus{}
	out.Spec.Containers = allocatedTo(pod.Spec.Containers, pod.Status.ContainerStatuses)
	out.Spec.InitContainers = allocatedTo(pod.Spec.InitContainers, pod.Status.InitContainerStatuses)
	return &out
}

// allocatedTo returns containers with their allocated resources.
func allocatedTo(containers []corev1.Container, statuses []corev1.ContainerStatus) []corev1.Container {
	out := slices.Clone(containers)
	for i := range out {
		for j := range statuses {
			if s := &statuses[j]; s.Name == out[i].Name && s.Resources != nil {
				out[i].Resources = *s.Resources
			}
		}
	}
	return out
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

// refuse returns the step of a rejected pod.
func refuse(pod *corev1.Pod, now time.Time, reason, message string) step {
	s := pod.Status.DeepCopy()
	s.Phase, s.Reason, s.Message = corev1.PodFailed, reason, "Pod was rejected: "+message
	s.StartTime, s.ObservedGeneration = &metav1.Time{Time: now}, pod.Generation
	return step{status: s, changed: true, events: []event{{Event: cluster.Event{
		Type: corev1.EventTypeWarning, Reason: reason, Message: message,
	}}}}
}
