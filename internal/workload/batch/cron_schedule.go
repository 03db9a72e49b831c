package batch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// missed classifies the number of scheduled times since the last reconcile of a CronJob.
type missed int

const (
	noneMissed missed = iota
	fewMissed
	manyMissed
)

const (
	// manyTimes is how many missed times are too many.
	manyTimes = 100
	// longestMiss is how far back missed times are looked for.
	longestMiss = 100 * 365 * 24 * time.Hour
	// scheduleDelay is added to each pause, so that a slightly slow clock does not miss a time.
	scheduleDelay = 100 * time.Millisecond
)

// errNoInterval is the error of a schedule that can be read and has no times: the 31st of February.
var errNoInterval = errors.New("time difference between two schedules is less than 1 second")

// hasZone reports whether a schedule contains a time zone, as old objects may.
func hasZone(cj *batchv1.CronJob) bool { return strings.Contains(cj.Spec.Schedule, "TZ") }

// parseSchedule returns the schedule of a CronJob, in its time zone. The library panics on some invalid ones.
func parseSchedule(cj *batchv1.CronJob) (s cron.Schedule, err error) {
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("invalid schedule format: %v", r)
		}
	}()
	text := cj.Spec.Schedule
	if zone := cj.Spec.TimeZone; zone != nil && !hasZone(cj) {
		if _, err := time.LoadLocation(*zone); err == nil {
			text = "TZ=" + *zone + " " + text
		}
	}
	return cron.ParseStandard(text)
}

// LastTime returns the most recent scheduled time, not after now, without a Job yet; nil if there is none. since is the
// start of the search: the time of the last Job, or the creation, or with withDeadline the start of the starting
// deadline if that is later.
func LastTime(cj *batchv1.CronJob, now time.Time, s cron.Schedule, withDeadline bool) (
	since time.Time, last *time.Time, n missed, err error,
) {
	since = cj.CreationTimestamp.Time
	if t := cj.Status.LastScheduleTime; t != nil {
		since = t.Time
	}
	if seconds := cj.Spec.StartingDeadlineSeconds; withDeadline && seconds != nil {
		if deadline := now.Add(-cluster.Seconds(*seconds)); deadline.After(since) {
			since = deadline
		}
	}
	// A status can hold any time. From one too far back, the estimate below would begin centuries before now.
	if earliest := now.Add(-longestMiss); earliest.After(since) {
		since = earliest
	}
	first := s.Next(since)
	second := s.Next(first)
	switch {
	case now.Before(first):
		return since, nil, noneMissed, nil
	case now.Before(second):
		return since, &first, noneMissed, nil
	}
	interval := int64(second.Sub(first).Round(time.Second).Seconds())
	if interval < 1 {
		return since, nil, noneMissed, errNoInterval
	}
	// The number of missed times is estimated from the first interval; the search begins one interval before the
	// estimate.
	count := int64(now.Sub(first).Seconds())/interval + 1
	for t := s.Next(first.Add(time.Duration((count-2)*interval) * time.Second)); !t.After(now); t = s.Next(t) {
		last = &t
	}
	n = fewMissed
	if count > manyTimes {
		n = manyMissed
	}
	return since, last, n, nil
}

// UntilNext returns the time until the next reconcile of a CronJob.
func UntilNext(cj *batchv1.CronJob, now time.Time, s cron.Schedule) time.Duration {
	since, last, n, err := LastTime(cj, now, s, false)
	switch {
	case err != nil, last == nil && n != noneMissed:
		last = &now
	case last == nil:
		last = &since
	}
	return s.Next(*last).Add(scheduleDelay).Sub(now)
}

// jobName returns the name of the Job for a time: it contains the minutes since 1970, so that a Job is created only
// once.
func jobName(cj *batchv1.CronJob, at time.Time) string {
	return fmt.Sprintf("%s-%d", cj.Name, at.Unix()/60)
}

// NewJob returns the Job of a CronJob for a time of its schedule.
func NewJob(cj *batchv1.CronJob, at time.Time) (*batchv1.Job, error) {
	zone := ""
	if cj.Spec.TimeZone != nil {
		zone = *cj.Spec.TimeZone
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil, err
	}
	template := &cj.Spec.JobTemplate
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: cj.Namespace, Name: jobName(cj, at), Labels: maps.Clone(template.Labels),
		Annotations: with(maps.Clone(template.Annotations), batchv1.CronJobScheduledTimestampAnnotation,
			at.In(location).Format(time.RFC3339)),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cj, cluster.CronJobs.GroupVersionKind())},
	}}
	template.Spec.DeepCopyInto(&job.Spec)
	return job, nil
}

// byStart sorts Jobs by start time, with unstarted Jobs last, then by name.
func byStart(jobs []*batchv1.Job) {
	slices.SortFunc(jobs, func(a, b *batchv1.Job) int {
		switch s, t := a.Status.StartTime, b.Status.StartTime; {
		case s == nil && t != nil:
			return 1
		case s != nil && t == nil:
			return -1
		case s.Equal(t):
			return strings.Compare(a.Name, b.Name)
		default:
			return s.Compare(t.Time)
		}
	})
}
