package batch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestIndexesAtRandom compares sets of indexes with maps.
func TestIndexesAtRandom(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	pick := func() (x indexes, in map[int]bool) {
		in = map[int]bool{}
		var list []int
		for range random.IntN(20) {
			i := random.IntN(40)
			in[i] = true
			list = append(list, i)
		}
		return x.with(sorted(list)), in
	}
	for range 500 {
		a, inA := pick()
		b, inB := pick()
		both := 0
		for i := range inA {
			if inB[i] {
				both++
			}
		}
		if got := a.overlap(b); got != both || a.count() != len(inA) {
			t.Fatalf("%v and %v have %d in common, want %d", a, b, got, both)
		}
	}
}

// TestIndexesOfMany tests Jobs with the largest number of completions, and sets of 100,000 spans.
func TestIndexesOfMany(t *testing.T) {
	t.Parallel()
	all := parseIndexes(fmt.Sprintf("0-%d", math.MaxInt32-1), math.MaxInt32)
	if len(all) != 1 || all.count() != math.MaxInt32 || len(indexes(nil).free(500, math.MaxInt32)) != 500 {
		t.Errorf("%v", all)
	}
	var spans indexes
	for i := range 100_000 {
		spans = append(spans, span{3 * i, 3*i + 1})
	}
	if got := spans.overlap(spans); got != 200_000 {
		t.Errorf("%d in common", got)
	}
}

// TestMissedForAges tests schedules with a last time, from a status, that is centuries in the past or future.
func TestMissedForAges(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, schedule := range []string{"* * * * *", "@every 1s", "0 0 29 2 *", "59 23 31 12 *", "* * * 1-11 *"} {
		for _, year := range []int{1, 1000, 1900, 2025, 9999} {
			for _, deadline := range []int64{0, 10, math.MaxInt32, math.MaxInt64} {
				cj := &batchv1.CronJob{}
				cj.Spec.Schedule, cj.Spec.StartingDeadlineSeconds = schedule, &deadline
				last := metav1.NewTime(time.Date(year, 12, 31, 23, 59, 0, 0, time.UTC))
				cj.Status.LastScheduleTime = &last
				s, err := parseSchedule(cj)
				if err != nil {
					t.Fatal(err)
				}
				_, at, _, err := LastTime(cj, now, s, true)
				if err != nil || at != nil && at.After(now) || at == nil && year < 2000 && deadline > math.MaxInt32 {
					t.Errorf("%s since %d with a deadline of %d s: %v, %v", schedule, year, deadline, at, err)
				}
				UntilNext(cj, now, s)
			}
		}
	}
}
