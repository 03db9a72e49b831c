package pod

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

// podSummary summarizes the statuses of a pod's containers.
type podSummary struct {
	pod           *corev1.Pod
	reason        string
	ready, total  int
	restarts      int
	restarted     metav1.Time // the last time
	sidecars      map[string]bool
	sideRestarts  int
	sideRestarted metav1.Time
	initializing  bool
}

// Cells returns the table cells of a pod, from the statuses of its containers.
func Cells(pod *corev1.Pod, e catalog.Env) []any {
	s := &podSummary{
		pod: pod, reason: string(pod.Status.Phase), total: len(pod.Spec.Containers), sidecars: map[string]bool{},
	}
	if pod.Status.Reason != "" {
		s.reason = pod.Status.Reason
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.reason = corev1.PodReasonSchedulingGated
		}
	}
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			s.sidecars[c.Name] = true
			s.total++
		}
	}
	s.readInit()
	if !s.initializing || hasCondition(pod, corev1.PodInitialized) {
		s.readMain()
	}
	switch {
	case pod.DeletionTimestamp != nil && pod.Status.Reason == "NodeLost":
		s.reason = "Unknown"
	case pod.DeletionTimestamp != nil && pod.Status.Phase != corev1.PodFailed &&
		pod.Status.Phase != corev1.PodSucceeded:
		s.reason = "Terminating"
	}
	restarts := strconv.Itoa(s.restarts)
	if s.restarts != 0 && !s.restarted.IsZero() {
		restarts = fmt.Sprintf("%d (%s ago)", s.restarts, rule.Ago(s.restarted, e))
	}
	ip := pod.Status.PodIP
	if ip == "" && len(pod.Status.PodIPs) > 0 {
		ip = pod.Status.PodIPs[0].IP
	}
	return []any{
		pod.Name, fmt.Sprintf("%d/%d", s.ready, s.total), s.reason, restarts, rule.Ago(pod.CreationTimestamp, e),
		rule.OrNone(ip), rule.OrNone(pod.Spec.NodeName), rule.OrNone(pod.Status.NominatedNodeName), gates(pod),
	}
}

// readInit reads the init containers up to the first that is not done.
func (s *podSummary) readInit() {
	for i := range s.pod.Status.InitContainerStatuses {
		c := &s.pod.Status.InitContainerStatuses[i]
		sidecar := s.sidecars[c.Name]
		s.restarts += int(c.RestartCount)
		later(&s.restarted, c)
		if sidecar {
			s.sideRestarts += int(c.RestartCount)
			later(&s.sideRestarted, c)
		}
		done := c.State.Terminated
		switch {
		case done != nil && done.ExitCode == 0:
			continue
		case sidecar && c.Started != nil && *c.Started:
			if c.Ready {
				s.ready++
			}
			continue
		case done != nil:
			s.reason = "Init:" + ended(done)
		case c.State.Waiting != nil && c.State.Waiting.Reason != "" && c.State.Waiting.Reason != "PodInitializing":
			s.reason = "Init:" + c.State.Waiting.Reason
		default:
			s.reason = fmt.Sprintf("Init:%d/%d", i, len(s.pod.Spec.InitContainers))
		}
		s.initializing = true
		return
	}
}

// readMain reads the containers, the first one last: it determines the reason.
func (s *podSummary) readMain() {
	s.restarts, s.restarted = s.sideRestarts, s.sideRestarted
	running, failure := false, ""
	statuses := s.pod.Status.ContainerStatuses
	for i := len(statuses) - 1; i >= 0; i-- {
		c := &statuses[i]
		s.restarts += int(c.RestartCount)
		later(&s.restarted, c)
		switch done := c.State.Terminated; {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			s.reason = c.State.Waiting.Reason
		case done != nil:
			s.reason = ended(done)
			if done.ExitCode != 0 {
				failure = s.reason
			}
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	if s.reason != "Completed" {
		return
	}
	switch {
	case running && hasCondition(s.pod, corev1.PodReady):
		s.reason = "Running"
	case failure != "":
		s.reason = failure
	case running:
		s.reason = "NotReady"
	}
}

func ended(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}

// later keeps the later of at and the container's last end.
func later(at *metav1.Time, c *corev1.ContainerStatus) {
	if t := c.LastTerminationState.Terminated; t != nil && at.Before(&t.FinishedAt) {
		*at = t.FinishedAt
	}
}

func hasCondition(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// gates counts the readiness gates with a true condition.
func gates(pod *corev1.Pod) string {
	if len(pod.Spec.ReadinessGates) == 0 {
		return rule.None
	}
	open := 0
	for _, g := range pod.Spec.ReadinessGates {
		for _, c := range pod.Status.Conditions {
			if c.Type == g.ConditionType {
				if c.Status == corev1.ConditionTrue {
					open++
				}
				break
			}
		}
	}
	return fmt.Sprintf("%d/%d", open, len(pod.Spec.ReadinessGates))
}

// ContainerNames returns the names and the images of containers.
func ContainerNames(containers []corev1.Container) (names, images string) {
	var n, i []string
	for _, c := range containers {
		n, i = append(n, c.Name), append(i, c.Image)
	}
	return strings.Join(n, ","), strings.Join(i, ",")
}
