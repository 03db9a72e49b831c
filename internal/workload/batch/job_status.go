package batch

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// isFinished reports whether a Job is complete or has failed.
func isFinished(job *batchv1.Job) bool {
	return isTrue(job, batchv1.JobComplete) || isTrue(job, batchv1.JobFailed)
}

func isTrue(job *batchv1.Job, kind batchv1.JobConditionType) bool {
	c := conditionOf(job, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}

func conditionOf(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if job.Status.Conditions[i].Type == kind {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

func suspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

func indexed(job *batchv1.Job) bool {
	return job.Spec.CompletionMode != nil && *job.Spec.CompletionMode == batchv1.IndexedCompletion
}

// replacesFailedOnly reports whether pods are replaced when they have failed, not when they are being deleted.
func replacesFailedOnly(job *batchv1.Job) bool {
	policy := job.Spec.PodReplacementPolicy
	return policy != nil && *policy == batchv1.Failed || job.Spec.PodFailurePolicy != nil
}

// hasFailed reports whether a pod counts as failed.
func hasFailed(p *corev1.Pod, job *batchv1.Job) bool {
	return p.Status.Phase == corev1.PodFailed ||
		!replacesFailedOnly(job) && p.DeletionTimestamp != nil && p.Status.Phase != corev1.PodSucceeded
}

func tracked(p *corev1.Pod) bool { return slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) }

// complete reports whether a Job has all successes that it needs, and no pod runs.
func complete(job *batchv1.Job, succeeded, running int32) bool {
	if running > 0 {
		return false
	}
	if job.Spec.Completions == nil {
		return succeeded > 0
	}
	return succeeded >= *job.Spec.Completions
}

// fresh returns the pods that ended is true of, that the Job counts, and that the status does not have.
func (l *look) fresh(counted []types.UID, ended func(*corev1.Pod) bool) []*corev1.Pod {
	return replica.Where(l.pods, func(p *corev1.Pod) bool {
		return tracked(p) && !slices.Contains(counted, p.UID) &&
			(!indexed(l.Job) || indexIn(p, l.completions()) != noIndex) && ended(p)
	})
}

func (l *look) completions() int { return int(*l.Spec.Completions) }

func (l *look) condition(kind batchv1.JobConditionType, reason, message string) *batchv1.JobCondition {
	return newCondition(kind, corev1.ConditionTrue, reason, message, l.now)
}

func newCondition(
	kind batchv1.JobConditionType, status corev1.ConditionStatus, reason, message string, now time.Time,
) *batchv1.JobCondition {
	at := metav1.NewTime(now)
	return &batchv1.JobCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastProbeTime: at, LastTransitionTime: at,
	}
}

// ensure sets a condition of the status and reports whether it is new. It does not add a condition with status False.
func (l *look) ensure(
	kind batchv1.JobConditionType, status corev1.ConditionStatus, reason, message string,
) bool {
	c := newCondition(kind, status, reason, message, l.now)
	if old := conditionOf(l.Job, kind); old != nil {
		if old.Status == status && old.Reason == reason && old.Message == message {
			return false
		}
		*old = *c
		return true
	}
	if status == corev1.ConditionFalse {
		return false
	}
	l.Status.Conditions = append(l.Status.Conditions, *c)
	return true
}

// findEnd decides whether the Job is over, and computes its indexes.
func (l *look) findEnd() {
	if isTrue(l.Job, batchv1.JobSuccessCriteriaMet) {
		l.end = conditionOf(l.Job, batchv1.JobSuccessCriteriaMet)
	} else if isTrue(l.Job, batchv1.JobFailureTarget) {
		target := conditionOf(l.Job, batchv1.JobFailureTarget)
		l.end = l.condition(batchv1.JobFailed, target.Reason, target.Message)
	} else if message := l.policyFails(); message != "" {
		l.fail(batchv1.JobReasonPodFailurePolicy, message)
	}
	switch {
	case l.end != nil:
	case l.failed > *l.Spec.BackoffLimit || l.restartsExceed():
		l.fail(batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
	case l.Spec.ActiveDeadlineSeconds == nil || suspended(l.Job):
	default:
		left := cluster.Seconds(*l.Spec.ActiveDeadlineSeconds) - l.now.Sub(l.Status.StartTime.Time)
		if left <= 0 {
			l.fail(batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
		} else {
			l.lookAfter(left)
		}
	}
	if indexed(l.Job) {
		l.findIndexes()
	}
}

func (l *look) fail(reason, message string) {
	l.end = l.condition(batchv1.JobFailureTarget, reason, message)
}

// lookAfter schedules another reconcile after d, or keeps an earlier one.
func (l *look) lookAfter(d time.Duration) {
	d = max(d, time.Millisecond)
	if l.again == 0 || d < l.again {
		l.again = d
	}
}

// policyFails returns why the pod failure policy ends the Job, "" if it does not.
func (l *look) policyFails() string {
	for _, p := range l.pods {
		if l.Spec.PodFailurePolicy == nil || !hasFailed(p, l.Job) {
			continue
		}
		if v := judge(l.Spec.PodFailurePolicy, p); v.message != "" {
			return v.message
		}
	}
	return ""
}

// restartsExceed reports whether the containers of pods that restart themselves have failed too often.
func (l *look) restartsExceed() bool {
	if l.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		return false
	}
	n := int32(0)
	for _, p := range l.pods {
		if p.Status.Phase != corev1.PodRunning && p.Status.Phase != corev1.PodPending {
			continue
		}
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			n += s.RestartCount
		}
	}
	return n > 0 && n >= *l.Spec.BackoffLimit
}

// findIndexes computes the succeeded and failed indexes, and whether they end the Job.
func (l *look) findIndexes() {
	l.counted = parseIndexes(l.Status.CompletedIndexes, l.completions())
	var succeeded []int
	for _, p := range l.pods {
		if i := indexIn(p, l.completions()); p.Status.Phase == corev1.PodSucceeded && i != noIndex && tracked(p) {
			succeeded = append(succeeded, i)
		}
	}
	l.done = l.counted.with(succeeded)
	l.succeeded = int32(l.done.count())
	if l.Spec.BackoffLimitPerIndex != nil {
		l.findLost()
	}
	if l.end != nil {
		return
	}
	if message, ok := succeeds(l.Spec.SuccessPolicy, l.completions(), l.done); ok {
		l.end = l.condition(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy, message)
	}
}

// findLost finds the indexes that have failed for good, and the failed pods that wait for their successors.
func (l *look) findLost() {
	var before indexes
	if l.Status.FailedIndexes != nil {
		before = parseIndexes(*l.Status.FailedIndexes, l.completions())
	}
	var failed []int
	for _, p := range l.pods {
		if i := indexIn(p, l.completions()); i != noIndex && tracked(p) && l.losesIndex(p) {
			failed = append(failed, i)
		}
	}
	lost := before.with(failed)
	l.lost = &lost
	if l.end == nil {
		switch most := l.Spec.MaxFailedIndexes; {
		case most != nil && lost.count() > int(*most):
			l.fail(batchv1.JobReasonMaxFailedIndexesExceeded,
				"Job has exceeded the specified maximal number of failed indexes")
		case lost.count() > 0 && lost.count()+l.done.count() >= l.completions():
			l.fail(batchv1.JobReasonFailedIndexes, "Job has failed indexes")
		}
	}
	l.delayed = map[int]*corev1.Pod{}
	active := indexes(nil).with(sorted(indexesOf(l.active)))
	for _, p := range l.fresh(nil, func(p *corev1.Pod) bool { return hasFailed(p, l.Job) }) {
		i := indexOf(p)
		if l.done.has(i) || lost.has(i) || active.has(i) {
			continue
		}
		if last := l.delayed[i]; last == nil ||
			allFailures(last) <= allFailures(p) && !endOf(p).Before(endOf(last)) {
			l.delayed[i] = p
		}
	}
}

func sorted(list []int) []int {
	slices.Sort(list)
	return list
}

// losesIndex reports whether the failure of a pod is its index's last.
func (l *look) losesIndex(p *corev1.Pod) bool {
	if !hasFailed(p, l.Job) {
		return false
	}
	v := judge(l.Spec.PodFailurePolicy, p)
	before, _ := failures(p)
	return v.action == batchv1.PodFailurePolicyActionFailIndex || v.counts() && before >= *l.Spec.BackoffLimitPerIndex
}
