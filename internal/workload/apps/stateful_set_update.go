package apps

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// Feature gates of updates.
const (
	// maxUnavailableGate lets a rolling update delete several pods at a time (KEP-961).
	maxUnavailableGate = "MaxUnavailableStatefulSet"
	// recreateGate lets an update delete all pods before it creates new ones (KEP-3541).
	recreateGate = "StatefulSetRecreateStrategy"
)

// rollOut deletes the pods that a rolling update replaces next.
func (r *ordered) rollOut(ctx context.Context, wanted []*corev1.Pod) error {
	if r.set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType {
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

// recreate deletes all pods with an old revision, and reports whether some are not gone yet.
func (r *ordered) recreate(ctx context.Context, pods []*corev1.Pod) (wait bool, err error) {
	var old []*corev1.Pod
	for _, p := range pods {
		if made(p) && p.Labels[appsv1.StatefulSetRevisionLabel] != r.update.Name {
			wait = true
			if p.DeletionTimestamp == nil {
				old = append(old, p)
			}
		}
	}
	if _, err = cluster.SlowStart(len(old), func(i int) error { return r.delete(ctx, old[i]) }); err != nil {
		return wait, err
	}
	switch {
	case wait:
		r.progress(corev1.ConditionTrue, "RecreateInProgress", "Deleting old revision pods")
	case r.current.Name != r.update.Name:
		r.progress(corev1.ConditionTrue, "RecreateInProgress", "Waiting for new-revision pods to be created")
	}
	return wait, nil
}

// recreated reports in an existing condition that all pods are recreated.
func (r *ordered) recreated() {
	if r.set.Spec.UpdateStrategy.Type == appsv1.RecreateStatefulSetStrategyType && r.progressing() >= 0 {
		r.progress(corev1.ConditionFalse, "RecreateCompleted", "All pods recreated successfully")
	}
}

// progressing returns the index of the condition Progressing, -1 without one.
func (r *ordered) progressing() int {
	return slices.IndexFunc(r.status.Conditions, func(c appsv1.StatefulSetCondition) bool {
		return c.Type == appsv1.StatefulSetProgressing
	})
}

// progress sets the condition Progressing. Its time is the time of the last change of its status.
func (r *ordered) progress(status corev1.ConditionStatus, reason, message string) {
	c := appsv1.StatefulSetCondition{
		Type: appsv1.StatefulSetProgressing, Status: status, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(r.now),
	}
	all := slices.Clone(r.status.Conditions) // the view shares the list
	if at := r.progressing(); at < 0 {
		all = append(all, c)
	} else {
		if all[at].Status == status {
			c.LastTransitionTime = all[at].LastTransitionTime
		}
		all[at] = c
	}
	r.status.Conditions = all
}
