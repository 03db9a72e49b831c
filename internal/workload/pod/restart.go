package pod

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// resetReason is the reason in the status of a container that was removed to restart all containers.
const (
	resetReason  = "RestartingAllContainers"
	resetMessage = "The container is removed because RestartAllContainers in place"
)

// restarts reports whether a container is started again after it has ended with a code: by its rules, then its own
// policy, then the pod's. Sources: KEP-5307, KEP-5532.
func restarts(pod *corev1.Pod, c *corev1.Container, code int32) bool {
	policy := corev1.ContainerRestartPolicy(pod.Spec.RestartPolicy)
	if c.RestartPolicy != nil {
		if rule := ruleFor(c, code); rule != nil && (rule.Action == corev1.ContainerRestartRuleActionRestart ||
			rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers) {
			return true
		}
		policy = *c.RestartPolicy
	}
	switch policy {
	case corev1.ContainerRestartPolicyNever:
		return false
	case corev1.ContainerRestartPolicyOnFailure:
		return code != 0
	}
	return true
}

// ruleFor returns the first restart rule that an exit code matches, or nil.
func ruleFor(c *corev1.Container, code int32) *corev1.ContainerRestartRule {
	for i := range c.RestartPolicyRules {
		rule := &c.RestartPolicyRules[i]
		if rule.ExitCodes == nil {
			continue
		}
		has := slices.Contains(rule.ExitCodes.Values, code)
		if has && rule.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn ||
			!has && rule.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpNotIn {
			return rule
		}
	}
	return nil
}

// canRestartAll reports whether a rule of a container can restart all containers of the pod.
func (us *units) canRestartAll() bool {
	return slices.ContainsFunc(us.all, func(u unit) bool {
		return u.kind != ephemeral && slices.ContainsFunc(u.spec.RestartPolicyRules, restartsAll)
	})
}

func restartsAll(r corev1.ContainerRestartRule) bool {
	return r.Action == corev1.ContainerRestartRuleActionRestartAllContainers
}

// restartAll restarts all containers if a rule requires it, in two steps: the condition AllContainersRestarting, then
// the removal of the containers. It reports whether the pod goes on.
func (l *life) restartAll() bool {
	cause := l.resetCause()
	c := conditionOf(&l.pod.Status, corev1.AllContainersRestarting)
	marked := c != nil && c.Status == corev1.ConditionTrue
	if cause == nil && !marked {
		return true
	}
	left := time.Duration(0)
	if cause != nil {
		left = cause.StartedAt.Add(resetInterval).Sub(l.now)
	}
	if marked && left <= 0 {
		l.reset()
		return true
	}
	l.resets = true
	l.again(left)
	return false
}

// resetInterval is the least time between two restarts of all containers. There is no back-off, but a kubelet notices
// ends once a second.
const resetInterval = time.Second

// resetCause returns an end for which all containers are restarted, or nil.
func (us *units) resetCause() *corev1.ContainerStateTerminated {
	for i := range us.all {
		u := &us.all[i]
		if u.kind == ephemeral || u.exit() == nil {
			continue
		}
		if rule := ruleFor(u.spec, u.exit().ExitCode); rule != nil && restartsAll(*rule) {
			return u.exit()
		}
	}
	return nil
}

// reset removes all containers, so that the pod starts anew in place.
func (l *life) reset() {
	for i := range l.all {
		u := &l.all[i]
		if u.kind == ephemeral {
			continue
		}
		u.ContainerID, u.ImageID = "", ""
		u.Resources, u.AllocatedResources = nil, nil
		if u.State.Waiting != nil { // its status stays
			continue
		}
		if u.running() {
			l.recordEvent(u.spec, corev1.EventTypeNormal, "Killing", "killing")
		}
		u.State = l.idle()
		if hidden, ok := l.memory.hidden[u.Name]; ok {
			u.State = hidden
		}
		u.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: resetReason, Message: resetMessage,
		}
		u.RestartCount++
	}
}

// removed reports whether the end of a run stands for a removed container.
func removed(t *corev1.ContainerStateTerminated) bool { return t != nil && t.Reason == resetReason }
