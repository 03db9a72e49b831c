package chain

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestStalls checks that writes are late after between one and two times patience, and that the timer stops when no
// write is in progress. The clock is synctest's.
func TestStalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all stalls
		ctx, cancel := context.WithCancel(t.Context())
		begun := time.Now()
		late := func(s *stall) bool {
			synctest.Wait()
			all.mu.Lock()
			defer all.mu.Unlock()
			return s.stopEnd != nil
		}
		until := func(d time.Duration) { time.Sleep(time.Until(begun.Add(d))) }
		begin := func() *stall {
			s := &stall{x: &exchange{ctx: ctx}}
			all.begin(s)
			return s
		}
		first := begin()
		until(patience / 2)
		quick, second := begin(), begin()
		until(patience)
		if late(first) || late(second) {
			t.Error("late when the timer has looked once")
		}
		third := begin()
		all.end(quick)
		until(2 * patience)
		if !late(first) || !late(second) || late(third) || late(quick) {
			t.Errorf("late after two looks: %v, %v, %v, %v", late(first), late(second), late(third), late(quick))
		}
		all.end(second)
		until(3 * patience)
		if !late(third) || all.first != nil {
			t.Errorf("late after three looks: %v", late(third))
		}
		for _, s := range []*stall{first, third} {
			if all.end(s) {
				t.Error("lent seats that it does not have")
			}
		}
		for s, cancelled := range map[*stall]bool{first: true, second: true, third: true, quick: false} {
			if got := all.done(s); got != cancelled {
				t.Errorf("the end of the write was asked for: %v", got)
			}
		}
		cancel()
		until(time.Hour)
		synctest.Wait()
		if all.timed {
			t.Error("the timer is set although nothing is being written")
		}
	})
}
