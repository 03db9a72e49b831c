package quota

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// podSum adds up the requests or limits of a pod. Containers and sidecars run concurrently and are summed; init
// containers run one after another before them, so the largest of them counts. Values of the pod itself replace the
// sum. During a resize, the larger total counts: of the specified, the allocated or the actual values.
//
// Source: k8s.io/component-helpers/resource. It is not imported: a module with newer k8s.io libraries would then have
// to upgrade it as well.
type podSum struct {
	pod        *corev1.Pod
	infeasible bool // the node has rejected the pending resize

	of      func(*corev1.ResourceRequirements) corev1.ResourceList // requests or limits
	granted bool                                                   // also counts the node's allocations
	assumed corev1.ResourceList                                    // defaults of a container's requests
}

// PodRequests returns the requests of a pod to a node: the largest sum of its containers' requests at any time,
// including allocations during a resize, and the overhead of its runtime class.
func PodRequests(pod *corev1.Pod) corev1.ResourceList { return AssumedRequests(pod, nil) }

// AssumedRequests is PodRequests with assumed as the default requests of each container.
func AssumedRequests(pod *corev1.Pod, assumed corev1.ResourceList) corev1.ResourceList {
	sum := newPodSum(pod)
	sum.assumed = assumed
	sum.of = func(r *corev1.ResourceRequirements) corev1.ResourceList { return r.Requests }
	sum.granted = true
	out := sum.containers()
	sum.ownWords(out)
	add(out, pod.Spec.Overhead)
	return out
}

// PodLimits returns the limits of a pod: the largest sum of its containers' limits at any time, with the overhead of
// its runtime class.
func PodLimits(pod *corev1.Pod) corev1.ResourceList {
	sum := newPodSum(pod)
	sum.of = func(r *corev1.ResourceRequirements) corev1.ResourceList { return r.Limits }
	out := sum.containers()
	sum.ownWords(out)
	for name, q := range pod.Spec.Overhead {
		if limit, ok := out[name]; ok && !limit.IsZero() {
			quantity.Add(&limit, q)
			out[name] = limit
		}
	}
	return out
}

func newPodSum(pod *corev1.Pod) *podSum {
	s := &podSum{pod: pod}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodResizePending {
			s.infeasible = c.Reason == corev1.PodReasonInfeasible
			break
		}
	}
	return s
}

// containers returns the largest of the specified, the allocated and the actual amounts of the containers.
func (s *podSum) containers() corev1.ResourceList {
	out := s.aggregate(s.actual)
	if s.granted {
		raise(out, s.aggregate(s.allocated))
	}
	if !s.infeasible {
		specified := s.aggregate(func(c *corev1.Container) corev1.ResourceList { return s.of(&c.Resources) })
		raise(specified, out)
		return specified
	}
	return out
}

// aggregate returns the amounts of the pod if amounts returns the amounts of its containers.
func (s *podSum) aggregate(amounts func(*corev1.Container) corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := range s.pod.Spec.Containers {
		add(out, s.orAssumed(amounts(&s.pod.Spec.Containers[i])))
	}
	sidecars, largest := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range s.pod.Spec.InitContainers {
		c := &s.pod.Spec.InitContainers[i]
		wants := s.orAssumed(amounts(c))
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(out, wants)
			add(sidecars, wants)
			raise(largest, sidecars)
			continue
		}
		during := corev1.ResourceList{} // the container first: a sum has the format of its first operand
		add(during, wants)
		add(during, sidecars)
		raise(largest, during)
	}
	raise(out, largest)
	return out
}

// statusOf returns the status of a container, or nil.
func (s *podSum) statusOf(c *corev1.Container) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{
		s.pod.Status.ContainerStatuses, s.pod.Status.InitContainerStatuses,
	} {
		for i := range list {
			if list[i].Name == c.Name {
				return &list[i]
			}
		}
	}
	return nil
}

// actual returns the amounts with which a container runs.
func (s *podSum) actual(c *corev1.Container) corev1.ResourceList {
	if status := s.statusOf(c); status != nil && status.Resources != nil && s.of(status.Resources) != nil {
		return s.of(status.Resources)
	}
	if s.granted {
		return s.allocated(c)
	}
	return s.wanted(c)
}

// allocated returns the requests of a container that the node has accepted.
func (s *podSum) allocated(c *corev1.Container) corev1.ResourceList {
	if status := s.statusOf(c); status != nil && status.AllocatedResources != nil {
		return status.AllocatedResources
	}
	return s.wanted(c)
}

// wanted returns the specified amounts of a container, or nil if the node has rejected them.
func (s *podSum) wanted(c *corev1.Container) corev1.ResourceList {
	if s.infeasible {
		return nil
	}
	return s.of(&c.Resources)
}

// orAssumed returns the requests of a container with the assumed defaults.
func (s *podSum) orAssumed(wants corev1.ResourceList) corev1.ResourceList {
	if len(s.assumed) == 0 {
		return wants
	}
	out := maps.Clone(s.assumed)
	maps.Copy(out, wants)
	return out
}

// ownWords sets the values of the pod itself.
func (s *podSum) ownWords(out corev1.ResourceList) {
	if s.pod.Spec.Resources == nil {
		return
	}
	for name, q := range s.of(s.pod.Spec.Resources) {
		if podMaySay(name) {
			out[name] = q
		}
	}
}

// podMaySay reports whether a pod can set a resource at the pod level.
func podMaySay(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// speaksForItself reports whether a pod sets resources at the pod level.
func speaksForItself(pod *corev1.Pod) bool {
	if pod.Spec.Resources == nil {
		return false
	}
	for _, list := range []corev1.ResourceList{pod.Spec.Resources.Requests, pod.Spec.Resources.Limits} {
		for name := range list {
			if podMaySay(name) {
				return true
			}
		}
	}
	return false
}

func add(to, list corev1.ResourceList) {
	for name, q := range list {
		sum, ok := to[name]
		if ok {
			quantity.Add(&sum, q)
		} else {
			sum = q.DeepCopy()
		}
		to[name] = sum
	}
}

// raise makes each amount of to at least that of list.
func raise(to, list corev1.ResourceList) {
	for name, q := range list {
		if has, ok := to[name]; !ok || quantity.Cmp(q, has) > 0 {
			to[name] = q.DeepCopy()
		}
	}
}
