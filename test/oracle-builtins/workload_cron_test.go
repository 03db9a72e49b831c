package oraclebuiltins

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	_ "k8s.io/kubernetes/pkg/controller/cronjob" // target of a linkname

	"github.com/bowsprit/bowsprit/internal/workload/batch"
)

//go:linkname mostRecentScheduleTime k8s.io/kubernetes/pkg/controller/cronjob.mostRecentScheduleTime
func mostRecentScheduleTime(cj *batchv1.CronJob, now time.Time, schedule cron.Schedule, withDeadline bool) (
	time.Time, *time.Time, int, error)

//go:linkname nextScheduleTimeDuration k8s.io/kubernetes/pkg/controller/cronjob.nextScheduleTimeDuration
func nextScheduleTimeDuration(cj *batchv1.CronJob, now time.Time, schedule cron.Schedule) *time.Duration

//go:linkname getJobFromTemplate2 k8s.io/kubernetes/pkg/controller/cronjob.getJobFromTemplate2
func getJobFromTemplate2(cj *batchv1.CronJob, at time.Time) (*batchv1.Job, error)

var schedules = []string{
	"* * * * *", "*/5 * * * *", "0 * * * *", "59 23 31 2 *", "30 6-16/4 * * 1-5", "0 0 1 1 *", "0 0 29 2 *",
	"@hourly", "@every 90s", "@every 7h", "15 10 * * *", "TZ=Asia/Tokyo 0 9 * * 1", "TZ=Europe/Berlin 30 2 * * *",
}

// TestCronSchedules compares the times of schedules, pauses and Jobs with Kubernetes'.
func TestCronSchedules(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	base := time.Date(2024, 2, 28, 23, 0, 0, 0, time.UTC)
	for range workloadCases(t) {
		text := schedules[r.IntN(len(schedules))]
		s, err := cron.ParseStandard(text)
		if err != nil {
			t.Fatal(err)
		}
		cj := &batchv1.CronJob{}
		cj.Name, cj.UID = "c", "u"
		cj.CreationTimestamp = metav1.NewTime(base)
		now := base.Add(time.Duration(r.IntN(1<<r.IntN(26))) * time.Second)
		if r.IntN(2) == 0 {
			cj.Status.LastScheduleTime = &metav1.Time{Time: base.Add(time.Duration(r.IntN(1e6)) * time.Second)}
		}
		if r.IntN(2) == 0 {
			cj.Spec.StartingDeadlineSeconds = new(int64(r.IntN(1 << r.IntN(20))))
		}
		deadline := r.IntN(2) == 0
		since, last, n, err := batch.LastTime(cj, now, s, deadline)
		wantSince, wantLast, wantN, wantErr := mostRecentScheduleTime(cj, now, s, deadline)
		got, want := fmt.Sprint(since, last, int(n), err), fmt.Sprint(wantSince, wantLast, wantN, wantErr)
		if got != want {
			t.Fatalf("%q of %+v at %v: %s, want %s", text, cj, now, got, want)
		}
		if got, want := batch.UntilNext(cj, now, s), *nextScheduleTimeDuration(cj, now, s); got != want {
			t.Fatalf("%q of %+v at %v: next in %v, want %v", text, cj, now, got, want)
		}
		if r.IntN(2) == 0 {
			cj.Spec.TimeZone = new([]string{"Asia/Tokyo", "Etc/UTC", "America/New_York"}[r.IntN(3)])
		}
		cj.Spec.JobTemplate.Labels = map[string]string{"a": "b"}
		cj.Spec.JobTemplate.Spec.BackoffLimit = new(int32(r.IntN(9)))
		job, err := batch.NewJob(cj, now)
		if err != nil {
			t.Fatal(err)
		}
		wantJob, err := getJobFromTemplate2(cj, now)
		if err != nil {
			t.Fatal(err)
		}
		wantJob.CreationTimestamp = metav1.Time{} // the server sets it
		if !equality.Semantic.DeepEqual(job, wantJob) {
			t.Fatalf("job %+v, want %+v", job, wantJob)
		}
	}
}
