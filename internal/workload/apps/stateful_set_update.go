package apps

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// maxUnavailableGate is the feature gate that lets a rolling update delete several pods at a time (KEP-961).
const maxUnavailableGate = "MaxUnavailableStatefulSet"

// rollOut deletes the pods that a rolling update replaces next.
func (r *ordered) rollOut(ctx context.Context, wanted []*corev1.Pod) error {
	if r.set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return nil
	}
	next := r.outdated
	if r.gates.maxUnavailable {
		next = r.allOutdated
	}
	for _, p := range next(wanted) {
		if err := r.delete(ctx, p); err != nil {
			return err
		}
		r.status.CurrentReplicas--
	}
	return nil
}

// partition returns the number of pods that a rolling update leaves alone, from the first one on.
func (r *ordered) partition() int {
	if u := r.set.Spec.UpdateStrategy.RollingUpdate; u != nil && u.Partition != nil {
		return int(*u.Partition)
	}
	return 0
}

// outdated returns the last pod with an old revision if all later pods are available, as Kubernetes does without
// maxUnavailable.
func (r *ordered) outdated(wanted []*corev1.Pod) []*corev1.Pod {
	next := first(r.set) + int(*r.set.Spec.Replicas) - 1
	for _, p := range slices.Backward(wanted) {
		_, n := ordinal(p)
		if n < next || n-first(r.set) < r.partition() { // a later pod is missing, or the partition keeps this one
			return nil
		}
		next = n - 1
		if r.old(p) {
			return []*corev1.Pod{p}
		}
		if unavailable(p, r) {
			return nil
		}
	}
	return nil
}

// allOutdated returns pods with an old revision, the last first, whose deletion leaves at most maxUnavailable pods
// unavailable. In a parallel set they follow all unavailable pods with an old revision, which cost no available pod.
func (r *ordered) allOutdated(wanted []*corev1.Pod) (pods []*corev1.Pod) {
	left := r.maxUnavailable() - int(*r.set.Spec.Replicas)
	for _, p := range wanted {
		if !unavailable(p, r) {
			left++
		}
	}
	var old []*corev1.Pod
	for _, p := range slices.Backward(wanted) {
		switch _, n := ordinal(p); {
		case n-first(r.set) < r.partition() || !r.old(p):
		case r.parallel() && !replica.IsAvailable(p, r.set.Spec.MinReadySeconds, r.now):
			pods = append(pods, p)
		default:
			old = append(old, p)
		}
	}
	return append(pods, old[:min(max(left, 0), len(old))]...)
}

// maxUnavailable returns how many pods may be unavailable during a rolling update: a part rounded down, at least one.
func (r *ordered) maxUnavailable() int {
	u := r.set.Spec.UpdateStrategy.RollingUpdate
	if u == nil || u.MaxUnavailable == nil {
		return 1
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(u.MaxUnavailable, int(*r.set.Spec.Replicas), false)
	if err != nil { // validation refuses such values
		return 1
	}
	return max(n, 1)
}

// old reports whether a pod exists, has an old revision and is not being deleted.
func (r *ordered) old(p *corev1.Pod) bool {
	return made(p) && p.Labels[appsv1.StatefulSetRevisionLabel] != r.update.Name && p.DeletionTimestamp == nil
}
