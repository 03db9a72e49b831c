package batch

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// jobs runs Jobs: it creates their pods and counts the ended ones.
//
// Its keys are "namespace/name" of Jobs, and "namespace/name/pod" of pods that may have lost their Job.
type jobs struct {
	*cluster.Cluster
	index *cluster.Index

	// backoffs are the back-offs of Jobs with failures, by uid. They are lost when another replica takes over, as with
	// Kubernetes' controller; the next pod is then created sooner.
	backoffs struct {
		sync.Mutex
		of map[types.UID]backoff
	}
}

func newJobs(c *cluster.Cluster, x *cluster.Index) *jobs {
	j := &jobs{Cluster: c, index: x}
	j.backoffs.of = map[types.UID]backoff{}
	return j
}

func (j *jobs) Observe(ev *watchcache.Event, need func(string)) {
	switch {
	case cluster.Jobs.Is(ev):
		need(ev.Entry.Key())
		if ev.Type == watchcache.Deleted {
			for _, name := range j.index.Names(cluster.Pods.Prefix, ev.Entry.Namespace, ev.Entry.UID) {
				need(orphanKey(ev.Entry.Namespace, name))
			}
		}
	case cluster.Pods.Is(ev):
		cluster.NeedOwner(ev, cluster.Jobs.Kind, need)
		cluster.Jobs.NeedMatching(j.index, ev,
			func(job *batchv1.Job) *metav1.LabelSelector { return job.Spec.Selector }, need)
		if ev.Type != watchcache.Deleted && bytes.Contains(ev.Entry.JSON(), []byte(batchv1.JobTrackingFinalizer)) &&
			!j.hasJob(ev.Entry) {
			need(orphanKey(ev.Entry.Namespace, ev.Entry.Name))
		}
	}
}

func orphanKey(namespace, pod string) string { return namespace + "/" + pod + "/pod" }

// hasJob reports whether the Job that controls a pod exists.
func (j *jobs) hasJob(pod *watchcache.Entry) bool {
	of := cluster.Owner(pod)
	if of.Kind != cluster.Jobs.Kind {
		return false
	}
	job := j.View.Collection(cluster.Jobs.Prefix).Snapshot().Get(pod.Namespace, of.Name)
	return job != nil && job.UID == of.UID
}

// Rest implements control.Pacer.
func (j *jobs) Rest(key string) time.Duration { return j.index.RestOf(cluster.Jobs.Prefix, key) }

func (j *jobs) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	if pod, ok := strings.CutSuffix(name, "/pod"); ok {
		return j.releaseOrphan(ctx, namespace, pod)
	}
	was := cluster.Jobs.Read(j.index, namespace, name)
	if was == nil || was.Spec.ManagedBy != nil && *was.Spec.ManagedBy != batchv1.JobControllerName {
		return nil
	}
	if isFinished(was) {
		j.setBackoff(was.UID, backoff{})
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(was.Spec.Selector)
	if err != nil {
		return nil
	}
	of := cluster.Jobs.Claimant(j.index, was, selector)
	of.Finalizers = []string{batchv1.JobTrackingFinalizer}
	all := cluster.Pods.Controlled(j.index, namespace, string(was.UID), true)
	pods, err := cluster.Pods.Claim(ctx, j.Cluster, of, all, nil)
	if err != nil {
		return err
	}
	l := newLook(j, was, pods)
	if err := l.reconcile(ctx); err != nil {
		return cluster.Soon(err)
	}
	if l.again > 0 {
		return control.Again(l.again)
	}
	return nil
}

// releaseOrphan removes the finalizer of a pod without a Job.
func (j *jobs) releaseOrphan(ctx context.Context, namespace, name string) error {
	e := j.View.Collection(cluster.Pods.Prefix).Snapshot().Get(namespace, name)
	if e == nil || j.hasJob(e) {
		return nil
	}
	if pod := cluster.Pods.Read(j.index, namespace, name); pod != nil {
		return j.untrack(ctx, pod)
	}
	return nil
}

func (j *jobs) backoff(of types.UID) backoff {
	j.backoffs.Lock()
	defer j.backoffs.Unlock()
	return j.backoffs.of[of]
}

func (j *jobs) setBackoff(of types.UID, b backoff) {
	j.backoffs.Lock()
	defer j.backoffs.Unlock()
	if b == (backoff{}) {
		delete(j.backoffs.of, of)
		return
	}
	j.backoffs.of[of] = b
}

// look is one reconcile of a Job. It changes the status in memory.
type look struct {
	*jobs
	*batchv1.Job
	was  *batchv1.Job
	now  time.Time
	pods []*corev1.Pod
	// again is the time until the next reconcile, 0 for none.
	again time.Duration

	active []*corev1.Pod
	// running counts active pods, ready the ready ones of them, and terminating the pods that are being deleted.
	running, ready, terminating int32
	// succeeded and failed count all ended pods, whether or not the status includes them.
	succeeded, failed int32
	backoff           backoff
	// end is the condition that ends the Job, nil while it runs: SuccessCriteriaMet or FailureTarget, and once its pods
	// are released, Complete or Failed.
	end *batchv1.JobCondition

	// counted are the succeeded indexes in the status, done all succeeded indexes.
	counted, done indexes
	// lost are the failed indexes; nil if the Job has no backoffLimitPerIndex.
	lost *indexes
	// delayed are the failed pods, by index, that stay until their replacements are created.
	delayed map[int]*corev1.Pod
}

func newLook(j *jobs, was *batchv1.Job, pods []*corev1.Pod) *look {
	l := &look{jobs: j, Job: was.DeepCopy(), was: was, now: j.Now(), pods: pods}
	if l.Status.UncountedTerminatedPods == nil {
		l.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	}
	l.active = replica.Where(pods, replica.IsActive)
	l.running = int32(len(l.active))
	l.ready = int32(len(replica.Where(l.active, replica.IsReady)))
	l.terminating = int32(len(replica.Where(pods, replica.IsTerminating)))
	uncounted := l.Status.UncountedTerminatedPods
	succeeded := l.fresh(uncounted.Succeeded, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	failed := l.fresh(uncounted.Failed, func(p *corev1.Pod) bool { return hasFailed(p, l.Job) })
	l.succeeded = l.Status.Succeeded + int32(len(succeeded)+len(uncounted.Succeeded))
	l.failed = l.Status.Failed + int32(len(uncounted.Failed))
	for _, p := range failed {
		if judge(l.Spec.PodFailurePolicy, p).counts() {
			l.failed++
		}
	}
	l.backoff = j.backoff(l.UID).after(succeeded, failed)
	return l
}

// reconcile creates or deletes pods, or ends the Job, and writes the counts.
func (l *look) reconcile(ctx context.Context) error {
	if l.Status.StartTime == nil && !suspended(l.Job) {
		l.Status.StartTime = &metav1.Time{Time: l.now}
	}
	l.findEnd()
	var failure error
	changed := false
	if l.end != nil {
		failure = l.stop(ctx)
	} else {
		managed := l.DeletionTimestamp == nil
		if managed {
			failure = l.manage(ctx)
		}
		if complete(l.Job, l.succeeded, l.running) {
			l.end = l.condition(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached,
				"Reached expected number of succeeded pods")
		} else if managed {
			changed = l.noteSuspension(ctx)
		}
	}
	changed = changed || l.running != l.Status.Active || !equal(l.Status.Ready, l.ready) ||
		!equal(l.Status.Terminating, l.terminating)
	l.Status.Active, l.Status.Ready, l.Status.Terminating = l.running, &l.ready, &l.terminating
	if err := l.track(ctx, changed); err != nil {
		return err
	}
	return failure
}

func equal(p *int32, n int32) bool { return p != nil && *p == n }

// stop deletes the pods of a finished Job.
func (l *look) stop(ctx context.Context) error {
	maker := l.maker()
	err := maker.DeleteAll(ctx, l.active)
	if err != nil {
		l.end = nil // the status reports the end after the last deletion
		return err
	}
	l.ready -= int32(len(replica.Where(l.active, replica.IsReady)))
	l.terminating += int32(len(l.active))
	l.running = 0
	return nil
}

func (l *look) maker() cluster.Maker {
	return cluster.Maker{Cluster: l.Cluster, About: cluster.Jobs.Ref(l.was)}
}

// noteSuspension sets the condition Suspended, and reports whether it has changed.
func (l *look) noteSuspension(ctx context.Context) bool {
	if suspended(l.Job) {
		if !l.ensure(batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "Job suspended") {
			return false
		}
		l.Normal(ctx, cluster.Jobs.Ref(l.was), "Suspended", "Job suspended")
		l.Status.StartTime = nil
		return true
	}
	if !l.ensure(batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "Job resumed") {
		return false
	}
	l.Normal(ctx, cluster.Jobs.Ref(l.was), "Resumed", "Job resumed")
	l.Status.StartTime = &metav1.Time{Time: l.now}
	return true
}
