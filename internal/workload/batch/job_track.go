package batch

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// uncountedMost is how many pods a status names at most.
const uncountedMost = 500

// track counts ended pods exactly once: first their uids are added to the status, then their finalizers are removed,
// and then the status counts them. When all pods are counted and gone, a finished Job gets its last condition.
func (l *look) track(ctx context.Context, changed bool) error {
	held := map[types.UID]bool{}
	for _, p := range l.pods {
		if tracked(p) {
			held[p.UID] = true
		}
	}
	changed = l.countReleased(held) || changed
	release, more, full := l.noteEnded()
	changed = l.noteIndexes() || more || changed
	changed = l.announceEnd() || changed
	if changed {
		if err := l.store(ctx); err != nil {
			return fmt.Errorf("adding uncounted pods to status: %w", err)
		}
		l.setBackoff(l.UID, l.backoff)
	}
	released := make([]bool, len(release))
	failure := cluster.AtOnce(len(release), func(i int) error {
		err := l.untrack(ctx, release[i])
		released[i] = err == nil
		return err
	})
	for i, p := range release {
		if released[i] {
			delete(held, p.UID)
		}
	}
	changed = l.countReleased(held)
	finished := failure == nil && !full && l.finish()
	if changed || finished {
		if err := l.store(ctx); err != nil {
			return fmt.Errorf("removing uncounted pods from status: %w", err)
		}
	}
	if finished {
		l.reportEnd(ctx)
	}
	return failure
}

// countReleased counts the uids in the status that are not held, and reports whether there were any.
func (l *look) countReleased(held map[types.UID]bool) bool {
	count := func(list *[]types.UID, counter *int32) bool {
		before := len(*list)
		*list = slices.DeleteFunc(*list, func(uid types.UID) bool { return !held[uid] })
		*counter += int32(before - len(*list))
		if len(*list) == 0 {
			*list = nil
		}
		return len(*list) != before
	}
	u := l.Status.UncountedTerminatedPods
	succeeded := count(&u.Succeeded, &l.Status.Succeeded)
	return count(&u.Failed, &l.Status.Failed) || succeeded
}

// noteEnded adds the uids or indexes of ended pods to the status, and returns the pods that can lose the finalizer.
// full is true if there are more pods than a status may list.
func (l *look) noteEnded() (release []*corev1.Pod, changed, full bool) {
	u := l.Status.UncountedTerminatedPods
	byIndexed := indexed(l.Job)
	if byIndexed {
		byIndex(l.pods)
	}
	var done []int
	for _, p := range l.pods {
		failed := hasFailed(p, l.Job)
		if !tracked(p) || !l.canRelease(p, failed) {
			continue
		}
		release = append(release, p)
		index := noIndex
		if byIndexed {
			index = indexIn(p, l.completions())
		}
		switch {
		case p.Status.Phase == corev1.PodSucceeded && !slices.Contains(u.Failed, p.UID):
			switch {
			case byIndexed && index != noIndex && !l.counted.has(index):
				done = append(done, index)
				changed = true
			case !byIndexed && !slices.Contains(u.Succeeded, p.UID):
				u.Succeeded = append(u.Succeeded, p.UID)
				changed = true
			}
		case failed || l.end != nil && l.end.Type != batchv1.JobSuccessCriteriaMet:
			if slices.Contains(u.Failed, p.UID) || byIndexed && index == noIndex ||
				!judge(l.Spec.PodFailurePolicy, p).counts() {
				break
			}
			u.Failed = append(u.Failed, p.UID)
			changed = true
		}
		if len(done)+len(u.Succeeded)+len(u.Failed) >= uncountedMost {
			full = true
			break
		}
	}
	l.done = l.done.with(done)
	return release, changed, full
}

// canRelease reports whether a pod can lose the finalizer.
func (l *look) canRelease(p *corev1.Pod, failed bool) bool {
	if l.DeletionTimestamp != nil || l.end != nil || p.Status.Phase == corev1.PodSucceeded {
		return true
	}
	if !failed {
		return false
	}
	waits := l.delayed[indexOf(p)] // nil without an index
	return waits == nil || waits.UID != p.UID
}

// noteIndexes writes the indexes into the status and reports whether they are new.
func (l *look) noteIndexes() (changed bool) {
	if !indexed(l.Job) {
		return false
	}
	text := l.done.String()
	changed = text != l.Status.CompletedIndexes
	l.Status.CompletedIndexes, l.Status.Succeeded = text, int32(l.done.count())
	if l.lost == nil {
		return changed
	}
	lost := l.lost.String()
	changed = changed || l.Status.FailedIndexes == nil || *l.Status.FailedIndexes != lost
	l.Status.FailedIndexes = &lost
	return changed
}

// announceEnd sets the condition that announces the end of the Job, and reports whether it is new.
func (l *look) announceEnd() (changed bool) {
	if l.end == nil {
		return false
	}
	last := batchv1.JobFailed
	switch l.end.Type {
	case batchv1.JobFailureTarget:
	case batchv1.JobSuccessCriteriaMet:
		last = batchv1.JobComplete
	default:
		return false
	}
	if !isTrue(l.Job, l.end.Type) {
		l.Status.Conditions = append(l.Status.Conditions, *l.end)
		changed = true
	}
	l.end = l.condition(last, l.end.Reason, l.end.Message)
	return changed
}

// finish sets the last condition if no pod is left to be counted or to go, and reports whether it has.
func (l *look) finish() bool {
	u := l.Status.UncountedTerminatedPods
	if l.end == nil || len(u.Succeeded)+len(u.Failed) > 0 || l.terminating > 0 {
		return false
	}
	l.ensure(l.end.Type, l.end.Status, l.end.Reason, l.end.Message)
	if l.end.Type == batchv1.JobComplete {
		l.Status.CompletionTime = &l.end.LastTransitionTime
	}
	return true
}

func (l *look) reportEnd(ctx context.Context) {
	if l.end.Type != batchv1.JobComplete {
		l.Warning(ctx, cluster.Jobs.Ref(l.was), l.end.Reason, "%s", l.end.Message)
		return
	}
	if l.Spec.Completions != nil && l.Status.Succeeded > *l.Spec.Completions {
		l.Warning(ctx, cluster.Jobs.Ref(l.was), "TooManySucceededPods",
			"Too many succeeded pods running after completion count reached")
	}
	l.Normal(ctx, cluster.Jobs.Ref(l.was), "Completed", "Job completed")
}

// store writes the status.
func (l *look) store(ctx context.Context) error {
	_, err := cluster.Jobs.ReviseStatus(ctx, l.Cluster, l.was, func(now *batchv1.Job) {
		now.Status = *l.Status.DeepCopy()
	})
	return err
}
