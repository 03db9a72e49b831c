package batch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// cronJobs creates Jobs by the schedules of CronJobs. Its keys are "namespace/name" of CronJobs.
type cronJobs struct {
	*cluster.Cluster
	index *cluster.Index
	due   dueLooks
}

func (c *cronJobs) Observe(ev *watchcache.Event, need func(string)) {
	switch {
	case cluster.CronJobs.Is(ev):
		if ev.Type != watchcache.Deleted && ev.Prev != nil && ev.Prev.UID == ev.Entry.UID &&
			timetable(ev.Prev) != timetable(ev.Entry) {
			c.due.reschedule(ev.Entry.Key(), c.Now())
		} else {
			c.due.atOnce(ev.Entry.Key())
		}
		need(ev.Entry.Key())
	case cluster.Jobs.Is(ev):
		cluster.NeedOwner(ev, cluster.CronJobs.Kind, func(key string) {
			c.due.atOnce(key)
			need(key)
		})
	}
}

// timetable returns the fields that define when a CronJob runs.
func timetable(e *watchcache.Entry) [2]string {
	if e.Unreadable() != nil {
		return [2]string{}
	}
	schedule, _ := e.Field("spec.schedule")
	zone, _ := e.Field("spec.timeZone")
	return [2]string{schedule, zone}
}

func (c *cronJobs) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	changed := c.due.take(key) // for a deleted CronJob too
	was := cluster.CronJobs.Read(c.index, namespace, name)
	if was == nil {
		return nil
	}
	if !changed.IsZero() {
		if s, err := parseSchedule(was); err == nil {
			if wait := UntilNext(was, changed, s) - c.Since(changed); wait > 0 {
				return control.Again(wait)
			}
		}
	}
	l := &cronLook{cronJobs: c, CronJob: was.DeepCopy(), now: c.Now()}
	l.jobs = cluster.Jobs.Controlled(c.index, namespace, string(was.UID), false)
	l.trim(ctx)
	failure := l.sync(ctx)
	if l.changed {
		_, err := cluster.CronJobs.ReviseStatus(ctx, c.Cluster, was, func(now *batchv1.CronJob) {
			now.Status = *l.Status.DeepCopy()
		})
		if err != nil {
			return cluster.Soon(control.IgnoreNotFound(err))
		}
	}
	if failure == nil && l.again > 0 {
		return control.Again(l.again)
	}
	return failure
}

// cronLook is one reconcile of a CronJob. It changes the status in memory.
type cronLook struct {
	*cronJobs
	*batchv1.CronJob
	now  time.Time
	jobs []*batchv1.Job
	// changed is set if the status must be written.
	changed bool
	// again is the time until the next reconcile, 0 for none.
	again time.Duration
}

func (l *cronLook) warn(ctx context.Context, reason, format string, args ...any) {
	l.Warning(ctx, cluster.CronJobs.Ref(l.CronJob), reason, format, args...)
}

func (l *cronLook) note(ctx context.Context, reason, format string, args ...any) {
	l.Normal(ctx, cluster.CronJobs.Ref(l.CronJob), reason, format, args...)
}

// trim deletes the oldest of the Jobs that have ended, above the history limits.
func (l *cronLook) trim(ctx context.Context) {
	for ended, limit := range map[batchv1.JobConditionType]*int32{
		batchv1.JobComplete: l.Spec.SuccessfulJobsHistoryLimit, batchv1.JobFailed: l.Spec.FailedJobsHistoryLimit,
	} {
		if limit == nil {
			continue
		}
		var jobs []*batchv1.Job
		for _, j := range l.jobs {
			if ending(j) == ended {
				jobs = append(jobs, j)
			}
		}
		byStart(jobs)
		for _, j := range jobs[:max(0, len(jobs)-int(*limit))] {
			if l.remove(ctx, j) == nil {
				l.changed = true
			}
		}
	}
}

// ending returns how a Job has ended, "" if it has not.
func ending(j *batchv1.Job) batchv1.JobConditionType {
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Type
		}
	}
	return ""
}

// remove deletes a Job with its pods.
func (l *cronLook) remove(ctx context.Context, j *batchv1.Job) error {
	policy := metav1.DeletePropagationBackground
	err := cluster.Jobs.Delete(ctx, l.Cluster, j, metav1.DeleteOptions{PropagationPolicy: &policy})
	if err != nil {
		l.warn(ctx, "FailedDelete", "Deleted job: %v", err)
		return err
	}
	l.forget(j.UID)
	l.note(ctx, "SuccessfulDelete", "Deleted job %v", j.Name)
	return nil
}

// forget removes a Job from status.active.
func (l *cronLook) forget(uid types.UID) {
	l.Status.Active = slices.DeleteFunc(l.Status.Active, func(r corev1.ObjectReference) bool { return r.UID == uid })
}

func (l *cronLook) isActive(uid types.UID) bool {
	return slices.ContainsFunc(l.Status.Active, func(r corev1.ObjectReference) bool { return r.UID == uid })
}

// sync records ended Jobs, and creates a Job if one is due.
func (l *cronLook) sync(ctx context.Context) error {
	l.follow(ctx)
	if l.DeletionTimestamp != nil {
		return nil
	}
	if zone := l.Spec.TimeZone; zone != nil {
		if _, err := time.LoadLocation(*zone); err != nil {
			l.warn(ctx, "UnknownTimeZone", "invalid timeZone: %q: %s", *zone, err)
			return nil
		}
	}
	if l.Spec.Suspend != nil && *l.Spec.Suspend {
		return nil
	}
	if hasZone(l.CronJob) {
		l.warn(ctx, "UnsupportedSchedule", "CRON_TZ or TZ used in schedule %q is not officially supported, see "+
			"https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details", l.Spec.Schedule)
	}
	s, err := parseSchedule(l.CronJob)
	if err != nil {
		l.warn(ctx, "UnparseableSchedule", "unparseable schedule: %q : %s", l.Spec.Schedule, err)
		return nil
	}
	_, at, n, err := LastTime(l.CronJob, l.now, s, true)
	if err != nil {
		l.warn(ctx, "InvalidSchedule", "invalid schedule: %s : %s", l.Spec.Schedule, err)
		return nil
	}
	if at != nil && n == manyMissed {
		l.warn(ctx, "TooManyMissedTimes", "too many missed start times. Set or decrease "+
			".spec.startingDeadlineSeconds or check clock skew")
	}
	if at != nil && l.mayStart(ctx, *at) {
		made, err := l.start(ctx, *at)
		if err != nil || !made {
			return err
		}
	}
	l.again = max(time.Nanosecond, UntilNext(l.CronJob, l.now, s))
	return nil
}

// follow updates the status from the Jobs: the active ones, and the time of the last success.
func (l *cronLook) follow(ctx context.Context) {
	there := map[types.UID]bool{}
	for _, j := range l.jobs {
		there[j.UID] = true
		known, ended := l.isActive(j.UID), ending(j)
		if !known && ended == "" {
			l.warn(ctx, "UnexpectedJob", "Saw a job that the controller did not create or forgot: %s", j.Name)
		}
		if known && ended != "" {
			l.forget(j.UID)
			l.note(ctx, "SawCompletedJob", "Saw completed job: %s, condition: %v", j.Name, ended)
			l.changed = true
		}
		if t, last := j.Status.CompletionTime, l.Status.LastSuccessfulTime; ended == batchv1.JobComplete && t != nil &&
			(last == nil || t.After(last.Time)) {
			l.Status.LastSuccessfulTime = t.DeepCopy()
			l.changed = true
		}
	}
	for _, ref := range slices.Clone(l.Status.Active) {
		if there[ref.UID] || cluster.Jobs.Read(l.index, ref.Namespace, ref.Name) != nil {
			continue
		}
		l.note(ctx, "MissingJob", "Active job went missing: %v", ref.Name)
		l.forget(ref.UID)
		l.changed = true
	}
}

// mayStart reports whether a Job is to be created for a scheduled time.
func (l *cronLook) mayStart(ctx context.Context, at time.Time) bool {
	deadline := l.Spec.StartingDeadlineSeconds
	switch {
	case deadline != nil && at.Add(cluster.Seconds(*deadline)).Before(l.now):
		l.warn(ctx, "MissSchedule", "Missed scheduled time to start a job: %s", at.UTC().Format(time.RFC1123Z))
		return false
	case l.Status.LastScheduleTime.Equal(&metav1.Time{Time: at}),
		slices.ContainsFunc(l.Status.Active, func(r corev1.ObjectReference) bool {
			return r.Name == jobName(l.CronJob, at)
		}):
		return false
	case l.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && len(l.Status.Active) > 0:
		l.note(ctx, "JobAlreadyActive",
			"Not starting job because prior execution is running and concurrency policy is Forbid")
		return false
	}
	return true
}

// start creates the Job for a time, and reports whether it belongs to this CronJob and is new in the status.
func (l *cronLook) start(ctx context.Context, at time.Time) (made bool, err error) {
	if l.Spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent {
		if err := l.replace(ctx); err != nil {
			return false, err
		}
	}
	job, err := NewJob(l.CronJob, at)
	if err != nil {
		return false, err
	}
	stored, err := cluster.Jobs.Create(ctx, l.Cluster, job)
	switch {
	case cluster.NamespaceEnds(err):
		return false, nil
	case apierrors.IsAlreadyExists(err): // created before a restart that lost the status update; or another owner's
		stored = cluster.Jobs.Read(l.index, job.Namespace, job.Name)
		if stored == nil || !metav1.IsControlledBy(stored, l.CronJob) || l.isActive(stored.UID) {
			return false, nil
		}
	case err != nil:
		l.warn(ctx, "FailedCreate", "Error creating job: %v", err)
		return false, err
	default:
		l.note(ctx, "SuccessfulCreate", "Created job %v", stored.Name)
	}
	l.Status.Active = append(l.Status.Active, cluster.Jobs.Ref(stored))
	l.Status.LastScheduleTime = &metav1.Time{Time: at}
	l.changed = true
	return true, nil
}

// replace deletes the Jobs that still run.
func (l *cronLook) replace(ctx context.Context) error {
	for _, ref := range slices.Clone(l.Status.Active) {
		job := cluster.Jobs.Read(l.index, ref.Namespace, ref.Name)
		if job == nil { // it is being deleted, and follow has not seen the end
			continue
		}
		if l.remove(ctx, job) != nil {
			return fmt.Errorf("could not replace job %s/%s", job.Namespace, job.Name)
		}
		l.changed = true
	}
	return nil
}
