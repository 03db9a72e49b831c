package batch

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// The pause after a failure: it doubles with each.
const (
	backoffFirst = 10 * time.Second
	backoffMost  = 10 * time.Minute
)

// backoff is the number of pod failures of a Job since the last success, and the time of the last failure.
type backoff struct {
	failures int32
	last     time.Time
}

// after returns the backoff when more pods have ended.
func (b backoff) after(succeeded, failed []*corev1.Pod) backoff {
	if len(succeeded) > 0 {
		b = backoff{}
		since := lastEnd(succeeded)
		failed = replica.Where(failed, func(p *corev1.Pod) bool { return endOf(p).After(since) })
	}
	if len(failed) == 0 {
		return b
	}
	return backoff{b.failures + int32(len(failed)), lastEnd(failed)}
}

// remaining returns the time until the next pod may be created.
func (b backoff) remaining(now time.Time) time.Duration {
	if b.failures == 0 {
		return 0
	}
	pause := backoffFirst
	for i := int32(1); i < b.failures && pause < backoffMost; i++ {
		pause *= 2
	}
	return max(0, min(pause, backoffMost)-now.Sub(b.last))
}

func lastEnd(pods []*corev1.Pod) time.Time {
	return endOf(slices.MaxFunc(pods, func(a, b *corev1.Pod) int { return endOf(a).Compare(endOf(b)) }))
}

// endOf returns when a pod has ended: when its last container ended, else when it ceased to be ready, else when it was
// deleted, else when it was created.
func endOf(p *corev1.Pod) time.Time {
	if end := containersEnd(p); !end.IsZero() {
		return end
	}
	if c := replica.Condition(p, corev1.PodReady); c != nil && c.Status == corev1.ConditionFalse &&
		!c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.Time
	}
	if p.DeletionTimestamp != nil {
		grace := time.Duration(0)
		if p.DeletionGracePeriodSeconds != nil {
			grace = cluster.Seconds(*p.DeletionGracePeriodSeconds)
		}
		return p.DeletionTimestamp.Add(-grace)
	}
	return p.CreationTimestamp.Time
}

// containersEnd returns when the last container or sidecar has ended, zero if one still runs. Running sidecars do not
// matter if there are no container statuses.
func containersEnd(p *corev1.Pod) (end time.Time) {
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Terminated == nil || s.State.Terminated.FinishedAt.IsZero() {
			return time.Time{}
		}
		end = later(end, s.State.Terminated.FinishedAt.Time)
	}
	for _, s := range p.Status.InitContainerStatuses {
		if !replica.IsSidecar(p, s.Name) {
			continue
		}
		if s.State.Terminated == nil || s.State.Terminated.FinishedAt.IsZero() {
			return time.Time{}
		}
		end = later(end, s.State.Terminated.FinishedAt.Time)
	}
	return end
}

func later(a, b time.Time) time.Time {
	if cmp.Compare(a.UnixNano(), b.UnixNano()) < 0 || a.IsZero() {
		return b
	}
	return a
}
