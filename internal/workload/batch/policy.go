package batch

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// verdict is the result of a pod failure policy for a pod.
type verdict struct {
	// action is the action of the matching rule, "" if none matches.
	action batchv1.PodFailurePolicyAction
	// message is the failure message of the Job, for the action FailJob.
	message string
}

// counts reports whether the failure counts towards the backoff limit.
func (v verdict) counts() bool { return v.action != batchv1.PodFailurePolicyActionIgnore }

// judge evaluates a policy, which may be nil, on a failed pod. The first matching rule decides.
func judge(policy *batchv1.PodFailurePolicy, p *corev1.Pod) verdict {
	if policy == nil {
		return verdict{}
	}
	for i, rule := range policy.Rules {
		why := ""
		switch {
		case rule.OnExitCodes != nil:
			if c := exited(p, rule.OnExitCodes); c != nil {
				why = fmt.Sprintf("Container %s for pod %s/%s failed with exit code %v matching %v rule at index %d",
					c.Name, p.Namespace, p.Name, c.State.Terminated.ExitCode, rule.Action, i)
			}
		default:
			if c := hasCondition(p, rule.OnPodConditions); c != nil {
				why = fmt.Sprintf("Pod %s/%s has condition %v matching %v rule at index %d",
					p.Namespace, p.Name, c.Type, rule.Action, i)
			}
		}
		if why == "" || !knownAction(rule.Action) {
			continue
		}
		v := verdict{action: rule.Action}
		if rule.Action == batchv1.PodFailurePolicyActionFailJob {
			v.message = why
		}
		return v
	}
	return verdict{}
}

func knownAction(a batchv1.PodFailurePolicyAction) bool {
	return slices.Contains([]batchv1.PodFailurePolicyAction{
		batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionFailIndex,
		batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailJob,
	}, a)
}

// exited returns the first failed container of a pod with one of the exit codes.
func exited(
	p *corev1.Pod, want *batchv1.PodFailurePolicyOnExitCodesRequirement,
) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		for i := range list {
			ended := list[i].State.Terminated
			if ended == nil || ended.ExitCode == 0 ||
				want.ContainerName != nil && *want.ContainerName != list[i].Name {
				continue
			}
			in := slices.Contains(want.Values, ended.ExitCode)
			if want.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn && in ||
				want.Operator == batchv1.PodFailurePolicyOnExitCodesOpNotIn && !in {
				return &list[i]
			}
		}
	}
	return nil
}

// hasCondition returns the first condition of a pod that matches a pattern.
func hasCondition(p *corev1.Pod, want []batchv1.PodFailurePolicyOnPodConditionsPattern) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		for _, pattern := range want {
			if c.Type == pattern.Type && c.Status == pattern.Status {
				return c
			}
		}
	}
	return nil
}

// succeeds reports whether a rule of a success policy, which may be nil, ends a Job before all indexes have succeeded.
func succeeds(policy *batchv1.SuccessPolicy, completions int, done indexes) (message string, ok bool) {
	if policy == nil || len(done) == 0 {
		return "", false
	}
	for i, rule := range policy.Rules {
		met := false
		if rule.SucceededIndexes != nil {
			want := parseIndexes(*rule.SucceededIndexes, completions)
			n := want.overlap(done)
			met = len(want) > 0 && (n == want.count() || rule.SucceededCount != nil && n >= int(*rule.SucceededCount))
		} else {
			met = rule.SucceededCount != nil && done.count() >= int(*rule.SucceededCount)
		}
		if met {
			return fmt.Sprintf("Matched rules at index %d", i), true
		}
	}
	return "", false
}
