package batch

import (
	"testing"
	"time"
)

// TestDueLooks checks that a schedule that changes twice waits from the last change on, and hides no other change.
func TestDueLooks(t *testing.T) {
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	second := first.Add(time.Second)
	for name, test := range map[string]struct {
		happens func(*dueLooks)
		want    time.Time
	}{
		"nothing":         {func(*dueLooks) {}, time.Time{}},
		"a change":        {func(d *dueLooks) { d.reschedule("a/b", first) }, first},
		"of another":      {func(d *dueLooks) { d.reschedule("a/c", first) }, time.Time{}},
		"two changes":     {func(d *dueLooks) { d.reschedule("a/b", first); d.reschedule("a/b", second) }, second},
		"a Job, a change": {func(d *dueLooks) { d.atOnce("a/b"); d.reschedule("a/b", first) }, time.Time{}},
		"a change, a Job": {func(d *dueLooks) { d.reschedule("a/b", first); d.atOnce("a/b") }, time.Time{}},
		"a Job, two changes": {func(d *dueLooks) {
			d.atOnce("a/b")
			d.reschedule("a/b", first)
			d.reschedule("a/b", second)
		}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &dueLooks{}
			test.happens(d)
			if got := d.take("a/b"); !got.Equal(test.want) {
				t.Errorf("it waits from %v on, want %v", got, test.want)
			}
			if got := d.take("a/b"); !got.IsZero() {
				t.Errorf("it is remembered after it was taken: %v", got)
			}
		})
	}
}
