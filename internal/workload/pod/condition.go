package pod

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/object/quantity"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// settle derives the phase, the conditions and the containers' readiness from the states of the containers. sandbox
// is set if the pod has a sandbox in which containers can be started. Source: pkg/kubelet/status of Kubernetes 1.37.
func (l *life) settle(sandbox bool) {
	for i := range l.all {
		l.finish(&l.all[i])
	}
	s := l.status
	s.Phase = l.phase(l.gone || l.late)
	if l.late {
		s.Phase = corev1.PodFailed
	}
	s.ObservedGeneration = l.pod.Generation
	l.sum()
	l.conditions(sandbox)
}

// ownConditions are the conditions that kubelets own.
var ownConditions = []corev1.PodConditionType{
	corev1.PodResizePending, corev1.PodResizeInProgress, corev1.PodReadyToStartContainers, corev1.PodInitialized,
	corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled, corev1.AllContainersRestarting,
}

func own(t corev1.PodConditionType) bool {
	for _, o := range ownConditions {
		if o == t {
			return true
		}
	}
	return false
}

func conditionOf(s *corev1.PodStatus, kind corev1.PodConditionType) *corev1.PodCondition {
	return cluster.Condition(s, kind)
}

// conditions sets the conditions, in a kubelet's order.
func (l *life) conditions(sandbox bool) {
	old := l.status.Conditions
	out := make([]corev1.PodCondition, 0, len(old)+5)
	for _, c := range old {
		if !own(c.Type) {
			out = append(out, c)
		}
	}
	l.status.Conditions = out
	was := &corev1.PodStatus{Conditions: old}
	if !isTerminal(l.status.Phase) && !l.gone {
		for _, kind := range []corev1.PodConditionType{corev1.PodResizePending, corev1.PodResizeInProgress} {
			if c := conditionOf(was, kind); c != nil {
				l.status.Conditions = append(l.status.Conditions, *c)
			}
		}
	}
	containers := l.containersReady()
	l.set(was, corev1.PodReadyToStartContainers, l.startable(was, sandbox))
	l.set(was, corev1.PodInitialized, l.initialized(was))
	l.set(was, corev1.PodReady, l.ready(containers))
	l.set(was, corev1.ContainersReady, containers)
	l.set(was, corev1.PodScheduled, met(true))
	if l.canRestartAll() {
		l.set(was, corev1.AllContainersRestarting, l.restarting())
	}
}

// set appends a condition. Its time changes only with its status.
func (l *life) set(was *corev1.PodStatus, kind corev1.PodConditionType, c corev1.PodCondition) {
	c.Type, c.LastTransitionTime = kind, metav1.Time{Time: l.now}
	if kind != corev1.AllContainersRestarting {
		c.ObservedGeneration = l.pod.Generation
	}
	if old := conditionOf(was, kind); old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	l.status.Conditions = append(l.status.Conditions, c)
}

// The reason and the messages of a pod without a sandbox in which containers can be started.
const (
	sandboxNotReady = "PodSandboxNotReady"
	noSandbox       = "no pod sandbox exists"
	stoppedSandbox  = "pod sandbox is not ready"
)

// startable returns the condition of the sandbox, which a pod has until its containers end for good.
func (l *life) startable(was *corev1.PodStatus, sandbox bool) corev1.PodCondition {
	old := conditionOf(was, corev1.PodReadyToStartContainers)
	switch {
	case sandbox:
		return met(true)
	case l.sandboxed, old != nil && (old.Status == corev1.ConditionTrue || old.Message == stoppedSandbox):
		return unmet(sandboxNotReady, stoppedSandbox)
	}
	return unmet(sandboxNotReady, noSandbox)
}

func met(is bool) corev1.PodCondition {
	if is {
		return corev1.PodCondition{Status: corev1.ConditionTrue}
	}
	return corev1.PodCondition{Status: corev1.ConditionFalse}
}

func unmet(reason, message string) corev1.PodCondition {
	return corev1.PodCondition{Status: corev1.ConditionFalse, Reason: reason, Message: message}
}

// finished returns the reason of conditions of a pod that is over, "" for others.
func (l *life) finished() string {
	switch l.status.Phase {
	case corev1.PodSucceeded:
		return "PodCompleted"
	case corev1.PodFailed:
		return "PodFailed"
	}
	return ""
}

func (l *life) initialized(was *corev1.PodStatus) corev1.PodCondition {
	if l.status.Phase == corev1.PodSucceeded {
		return corev1.PodCondition{Status: corev1.ConditionTrue, Reason: l.finished()}
	}
	for i := range l.mains() {
		if l.mains()[i].State.Waiting == nil {
			return met(true)
		}
	}
	var incomplete []string
	for i := range l.inits() {
		u := &l.inits()[i]
		if u.kind == sidecarContainer && !*u.Started || u.kind == initContainer && !u.Ready {
			incomplete = append(incomplete, u.Name)
		}
	}
	if c := conditionOf(was, corev1.PodInitialized); len(incomplete) == 0 ||
		c != nil && c.Status == corev1.ConditionTrue { // a pod stays initialized when its containers are restarted
		return met(true)
	}
	return unmet("ContainersNotInitialized", fmt.Sprintf("containers with incomplete status: %s", incomplete))
}

func (l *life) containersReady() corev1.PodCondition {
	if why := l.finished(); why != "" {
		return unmet(why, "")
	}
	var unready []string
	for i := range l.all {
		if u := &l.all[i]; (u.kind == sidecarContainer || u.kind == plain) && !u.Ready {
			unready = append(unready, u.Name)
		}
	}
	if len(unready) == 0 {
		return met(true)
	}
	return unmet("ContainersNotReady", fmt.Sprintf("containers with unready status: %s", unready))
}

// ready is true if the containers are ready and the pod's gates are open.
func (l *life) ready(containers corev1.PodCondition) corev1.PodCondition {
	if containers.Status != corev1.ConditionTrue {
		return containers
	}
	var why []string
	for _, gate := range l.pod.Spec.ReadinessGates {
		switch c := conditionOf(l.status, gate.ConditionType); {
		case c == nil:
			why = append(why, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.",
				string(gate.ConditionType)))
		case c.Status != corev1.ConditionTrue:
			why = append(why, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v",
				string(gate.ConditionType), c.Status))
		}
	}
	if len(why) == 0 {
		return met(true)
	}
	return unmet("ReadinessGatesNotReady", strings.Join(why, ", "))
}

// restarting is true while all containers are about to be restarted.
func (l *life) restarting() corev1.PodCondition {
	switch why := l.finished(); {
	case why != "":
		return unmet(why, "")
	case l.resets:
		return corev1.PodCondition{
			Status: corev1.ConditionTrue, Reason: "RestartAllContainersStarted",
			Message: "container exited with restart policy rule",
		}
	}
	return met(false)
}

func equal(a, b *corev1.PodStatus) bool { return quantity.Semantic.DeepEqual(a, b) }
