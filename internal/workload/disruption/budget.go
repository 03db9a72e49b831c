package disruption

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// patience is how long a pod may exist undeleted after its eviction was granted. Then it counts again, and its
// condition DisruptionTarget is reset.
const patience = 2 * time.Minute

// NeedsScale reports whether a budget depends on the expected number of pods.
func NeedsScale(b *policyv1.PodDisruptionBudget) bool {
	return b.Spec.MaxUnavailable != nil || b.Spec.MinAvailable != nil && b.Spec.MinAvailable.Type == intstr.String
}

// Desired returns how many of the expected pods must be healthy.
func Desired(b *policyv1.PodDisruptionBudget, expected int32) (int32, error) {
	switch {
	case b.Spec.MaxUnavailable != nil:
		n, err := intstr.GetScaledValueFromIntOrPercent(b.Spec.MaxUnavailable, int(expected), true)
		return max(0, expected-int32(n)), err
	case b.Spec.MinAvailable != nil:
		n, err := intstr.GetScaledValueFromIntOrPercent(b.Spec.MinAvailable, int(expected), true)
		return int32(n), err
	}
	return 0, nil
}

// total returns the sum of the scales of controllers, at most the largest number.
func total(scales map[types.UID]int32) int32 {
	sum := int64(0)
	for _, n := range scales {
		sum += int64(n)
	}
	return int32(min(sum, math.MaxInt32))
}

// Disrupted returns the disrupted pods of a budget with a pending deletion, the earliest time at which one of them
// times out (zero for none), and the pods that have timed out.
func Disrupted(b *policyv1.PodDisruptionBudget, pods []*corev1.Pod, now time.Time) (
	left map[string]metav1.Time, until time.Time, late []*corev1.Pod,
) {
	left = map[string]metav1.Time{}
	for _, p := range pods {
		at, ok := b.Status.DisruptedPods[p.Name]
		if !ok || p.DeletionTimestamp != nil {
			continue
		}
		end := at.Add(patience)
		if end.Before(now) {
			late = append(late, p)
			continue
		}
		if left[p.Name] = at; until.IsZero() || end.Before(until) {
			until = end
		}
	}
	return left, until, late
}

// Healthy returns how many pods are ready and stay.
func Healthy(pods []*corev1.Pod, disrupted map[string]metav1.Time, now time.Time) (n int32) {
	for _, p := range pods {
		at, leaves := disrupted[p.Name]
		leaves = leaves && at.Add(patience).After(now)
		if p.DeletionTimestamp == nil && !leaves && replica.IsReady(p) {
			n++
		}
	}
	return n
}

// Count sets the numbers in the status of a budget and reports whether the status has changed.
func Count(b *policyv1.PodDisruptionBudget, healthy, desired, expected int32, disrupted map[string]metav1.Time) bool {
	was := b.Status.DeepCopy()
	b.Status.CurrentHealthy, b.Status.DesiredHealthy, b.Status.ExpectedPods = healthy, desired, expected
	b.Status.DisruptedPods, b.Status.ObservedGeneration = disrupted, b.Generation
	b.Status.DisruptionsAllowed = max(0, healthy-desired)
	if expected <= 0 { // its first pods may not be in the view yet
		b.Status.DisruptionsAllowed = 0
	}
	c := metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
		Reason: policyv1.InsufficientPodsReason, ObservedGeneration: b.Generation,
	}
	if b.Status.DisruptionsAllowed > 0 {
		c.Status, c.Reason = metav1.ConditionTrue, policyv1.SufficientPodsReason
	}
	if has := meta.FindStatusCondition(was.Conditions, c.Type); has == nil || has.Status != c.Status ||
		has.Reason != c.Reason || was.ObservedGeneration != b.Generation {
		meta.SetStatusCondition(&b.Status.Conditions, c)
	}
	return !equality.Semantic.DeepEqual(was, &b.Status)
}

// stale returns the time until the condition DisruptionTarget of a pod must be reset; false means never.
func stale(p *corev1.Pod, now time.Time) (after time.Duration, ok bool) {
	c := replica.Condition(p, corev1.DisruptionTarget)
	if p.DeletionTimestamp != nil || c == nil || c.Status != corev1.ConditionTrue ||
		c.Reason == corev1.PodReasonTerminationByKubelet || replica.HasEnded(p) {
		return 0, false
	}
	return max(0, patience-now.Sub(c.LastTransitionTime.Time)), true
}
