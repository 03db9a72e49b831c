package batch_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

var cronJobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}

// cronJob returns a CronJob for every full hour. Its Jobs run for ever if ends is not set.
func cronJob(name string, ends bool, spec map[string]any) *unstructured.Unstructured {
	o := controltest.Object("batch/v1", "CronJob", "default", name)
	if spec["schedule"] == nil {
		spec["schedule"] = "0 * * * *"
	}
	pod := map[string]any{"spec": map[string]any{
		"restartPolicy": "Never", "containers": []any{map[string]any{"name": "c", "image": "a"}},
	}}
	if !ends {
		pod["metadata"] = map[string]any{
			"annotations": map[string]any{"bowsprit.dev/simulate-run-time": "1000000h"},
		}
	}
	spec["jobTemplate"] = map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"of": name}},
		"spec":     map[string]any{"template": pod},
	}
	o.Object["spec"] = spec
	return o
}

// crons is a server with a clock that stands at five minutes after a full hour.
type crons struct {
	*controltest.Cluster
	clock *testserver.Clock
	hour  time.Time
}

func startCrons(t *testing.T) *crons {
	c := &crons{clock: testserver.NewClock()}
	c.pass(0)
	c.Cluster = controltest.Start(t, testserver.WithWorkloads(), testserver.WithClock(c.clock))
	return c
}

// pass advances the clock to the next full hour, and by more hours.
func (c *crons) pass(more int) {
	now := c.clock.Now()
	c.hour = now.Truncate(time.Hour).Add(time.Duration(1+more) * time.Hour)
	c.clock.Advance(c.hour.Add(5 * time.Minute).Sub(now))
}

// job returns the name of the Job that a CronJob has for the last full hour.
func (c *crons) job(name string) string { return fmt.Sprintf("%s-%d", name, c.hour.Unix()/60) }

// until waits until a CronJob has exactly the given Jobs.
func (c *crons) until(name string, want ...string) {
	c.Helper()
	c.When(jobs, "default", "the jobs "+strings.Join(want, ", "), func(all map[string]*unstructured.Unstructured) bool {
		var have []string
		for _, j := range slices.Sorted(maps.Keys(all)) {
			if all[j].GetLabels()["of"] == name && all[j].GetDeletionTimestamp() == nil {
				have = append(have, j)
			}
		}
		return slices.Equal(have, want)
	})
}

// when waits for a condition on the status of a CronJob.
func (c *crons) when(name, desc string, is func(status map[string]any) bool) {
	c.Helper()
	c.When(cronJobs, "default", desc, func(all map[string]*unstructured.Unstructured) bool {
		status, _, _ := unstructured.NestedMap(all[name].Object, "status")
		return is(status)
	})
}

// report waits for an event about a CronJob.
func (c *crons) report(name, reason string) {
	c.Helper()
	c.When(controltest.Events, "default", reason+" of "+name, func(all map[string]*unstructured.Unstructured) bool {
		for _, ev := range all {
			about, _, _ := unstructured.NestedString(ev.Object, "involvedObject", "name")
			got, _, _ := unstructured.NestedString(ev.Object, "reason")
			if about == name && got == reason {
				return true
			}
		}
		return false
	})
}

func (c *crons) patch(name, data string) {
	c.Helper()
	_, err := c.In(cronJobs, "default").Patch(c.Context(), name, types.MergePatchType, []byte(data),
		metav1.PatchOptions{})
	if err != nil {
		c.Fatal(err)
	}
}

func active(status map[string]any) (names []string) {
	list, _ := status["active"].([]any)
	for _, v := range list {
		ref, _ := v.(map[string]any)
		names = append(names, fmt.Sprint(ref["name"]))
	}
	return names
}

// TestCronJobs checks that CronJobs create Jobs at full hours, each named by its time.
func TestCronJobs(t *testing.T) {
	c := startCrons(t)
	for _, o := range []*unstructured.Unstructured{
		cronJob("plain", true, map[string]any{"successfulJobsHistoryLimit": int64(1)}),
		cronJob("allow", false, map[string]any{"timeZone": "Asia/Tokyo"}),
		cronJob("forbid", false, map[string]any{"concurrencyPolicy": "Forbid"}),
		cronJob("replace", false, map[string]any{"concurrencyPolicy": "Replace"}),
		cronJob("suspended", true, map[string]any{"suspend": true}),
		cronJob("yearly", true, map[string]any{"schedule": "30 12 1 1 *"}),
	} {
		c.Create(cronJobs, o)
	}
	c.pass(0)
	first := map[string]string{}
	for _, name := range []string{"plain", "allow", "forbid", "replace"} {
		first[name] = c.job(name)
		c.until(name, first[name])
		c.when(name, "the time", func(status map[string]any) bool {
			return status["lastScheduleTime"] == c.hour.UTC().Format(time.RFC3339)
		})
		c.report(name, "SuccessfulCreate")
	}
	job, err := c.In(jobs, "default").Get(c.Context(), first["allow"], metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tokyo := c.hour.In(time.FixedZone("", 9*60*60)).Format(time.RFC3339)
	if got := job.GetAnnotations()["batch.kubernetes.io/cronjob-scheduled-timestamp"]; got != tokyo {
		t.Errorf("the time of the Job is %q, want %q", got, tokyo)
	}
	if owners := job.GetOwnerReferences(); len(owners) != 1 || owners[0].Kind != "CronJob" ||
		owners[0].Controller == nil || !*owners[0].Controller {
		t.Errorf("the owners of the Job are %v", owners)
	}
	c.when("plain", "success", func(status map[string]any) bool {
		return status["lastSuccessfulTime"] != nil && len(active(status)) == 0
	})
	c.report("plain", "SawCompletedJob")
	c.patch("yearly", `{"spec":{"schedule":"0 * * * *"}}`)
	c.When(cronJobs, "default", "the new schedule", func(all map[string]*unstructured.Unstructured) bool {
		s, _, _ := unstructured.NestedString(all["yearly"].Object, "spec", "schedule")
		return s == "0 * * * *"
	}) // the controller has seen the change when a read returns

	c.pass(0)
	c.until("plain", c.job("plain")) // the first one exceeds the history limit
	c.report("plain", "SuccessfulDelete")
	c.until("allow", first["allow"], c.job("allow"))
	c.report("forbid", "JobAlreadyActive")
	c.until("forbid", first["forbid"])
	c.until("replace", c.job("replace"))
	c.when("replace", "the one that replaces", func(status map[string]any) bool {
		return slices.Equal(active(status), []string{c.job("replace")})
	})
	c.until("yearly", c.job("yearly")) // and none for the hour before the change
	c.until("suspended")

	c.patch("suspended", `{"spec":{"suspend":false}}`)
	c.until("suspended", c.job("suspended"))
	c.Delete(jobs, controltest.Object("batch/v1", "Job", "default", first["forbid"]), "Background")
	c.report("forbid", "MissingJob")
}

// TestMissedSchedules checks that a server creates one Job for missed times, if the starting deadline allows.
func TestMissedSchedules(t *testing.T) {
	c := startCrons(t)
	c.Create(cronJobs, cronJob("many", true, map[string]any{}))
	c.Create(cronJobs, cronJob("late", true, map[string]any{"startingDeadlineSeconds": int64(10)}))
	c.pass(200)
	c.report("many", "TooManyMissedTimes")
	c.until("many", c.job("many"))
	before := c.job("many")
	c.pass(0)
	c.until("many", before, c.job("many")) // and it continues
	c.until("late")
}

// A year passes in no time.
func TestCronJobYear(t *testing.T) {
	c := startCrons(t)
	c.Create(cronJobs, cronJob("new-year", true, map[string]any{"schedule": "0 0 1 1 *"}))
	year := c.clock.Now().UTC().Year() + 1
	c.clock.Advance(366 * 24 * time.Hour)
	at := time.Date(year, 1, 1, 0, 0, 0, 0, time.Local)
	c.until("new-year", fmt.Sprintf("new-year-%d", at.Unix()/60))
}
