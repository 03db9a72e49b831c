package pod

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/object/quantity"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// settle derives the phase and the conditions from the states of the containers. Source: getPhase and
// pkg/kubelet/status of Kubernetes 1.36.
func (l *life) settle() {
	l.status.Phase = l.phase()
	l.status.ObservedGeneration = l.pod.Generation
	l.conditions()
}

func (l *life) phase() corev1.PodPhase {
	running, wait, failed, done := 0, 0, 0, 0
	for i, s := range l.status.InitContainerStatuses {
		first := !sidecar(&l.pod.Spec.InitContainers[i])
		switch t := s.State.Terminated; {
		case first && t != nil && t.ExitCode != 0: // it is not restarted
			return corev1.PodFailed
		case first && s.State.Running != nil, s.State.Waiting != nil && s.LastTerminationState.Terminated == nil:
			return corev1.PodPending
		}
	}
	for _, s := range l.status.ContainerStatuses {
		switch {
		case s.State.Running != nil, s.LastTerminationState.Terminated != nil && s.State.Waiting != nil:
			running++
		case s.State.Terminated == nil:
			wait++
		case s.State.Terminated.ExitCode == 0:
			done++
		default:
			failed++
		}
	}
	switch {
	case wait > 0:
		return corev1.PodPending
	case running > 0:
		return corev1.PodRunning
	case failed > 0:
		return corev1.PodFailed
	case done > 0:
		return corev1.PodSucceeded
	}
	return corev1.PodRunning
}

// ownConditions are the conditions that kubelets own, in their order.
var ownConditions = []corev1.PodConditionType{
	corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady,
}

func own(t corev1.PodConditionType) bool {
	for _, o := range ownConditions {
		if o == t {
			return true
		}
	}
	return false
}

func (l *life) conditions() {
	done := ""
	switch l.status.Phase {
	case corev1.PodSucceeded:
		done = "PodCompleted"
	case corev1.PodFailed:
		done = "PodFailed"
	}
	sandbox := corev1.PodCondition{Status: corev1.ConditionTrue}
	if done != "" {
		sandbox.Status = corev1.ConditionFalse
	}
	containers := l.containersReady(done)
	for _, kind := range ownConditions {
		var c corev1.PodCondition
		switch kind {
		case corev1.PodReadyToStartContainers:
			c = sandbox
		case corev1.PodInitialized:
			c = l.initialized(done)
		case corev1.ContainersReady:
			c = containers
		default:
			c = l.ready(containers)
		}
		c.Type, c.ObservedGeneration = kind, l.pod.Generation
		p := corev1.Pod{Status: *l.status}
		cluster.SetCondition(&p, c, l.now)
		*l.status = p.Status
	}
}

func (l *life) initialized(done string) corev1.PodCondition {
	var incomplete []string
	for i, s := range l.status.InitContainerStatuses {
		if t := s.State.Terminated; t != nil && t.ExitCode == 0 ||
			sidecar(&l.pod.Spec.InitContainers[i]) && s.State.Running != nil {
			continue
		}
		incomplete = append(incomplete, s.Name)
	}
	switch {
	case done == "PodCompleted":
		return corev1.PodCondition{Status: corev1.ConditionTrue, Reason: done}
	case len(incomplete) == 0:
		return corev1.PodCondition{Status: corev1.ConditionTrue}
	}
	return corev1.PodCondition{
		Status: corev1.ConditionFalse, Reason: "ContainersNotInitialized",
		Message: fmt.Sprintf("containers with incomplete status: %s", incomplete),
	}
}

func (l *life) containersReady(done string) corev1.PodCondition {
	var unready []string
	for _, s := range l.status.ContainerStatuses {
		if !s.Ready {
			unready = append(unready, s.Name)
		}
	}
	switch {
	case done != "":
		return corev1.PodCondition{Status: corev1.ConditionFalse, Reason: done}
	case len(unready) == 0:
		return corev1.PodCondition{Status: corev1.ConditionTrue}
	}
	return corev1.PodCondition{
		Status: corev1.ConditionFalse, Reason: "ContainersNotReady",
		Message: fmt.Sprintf("containers with unready status: %s", unready),
	}
}

// ready is true if the containers are ready and the pod's gates are open.
func (l *life) ready(containers corev1.PodCondition) corev1.PodCondition {
	if containers.Status != corev1.ConditionTrue {
		return containers
	}
	var why []string
	for _, gate := range l.pod.Spec.ReadinessGates {
		switch c := cluster.Condition(l.status, gate.ConditionType); {
		case c == nil:
			why = append(why, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.",
				string(gate.ConditionType)))
		case c.Status != corev1.ConditionTrue:
			why = append(why, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v",
				string(gate.ConditionType), c.Status))
		}
	}
	if len(why) == 0 {
		return corev1.PodCondition{Status: corev1.ConditionTrue}
	}
	return corev1.PodCondition{
		Status: corev1.ConditionFalse, Reason: "ReadinessGatesNotReady", Message: strings.Join(why, ", "),
	}
}

func equal(a, b *corev1.PodStatus) bool { return quantity.Semantic.DeepEqual(a, b) }
