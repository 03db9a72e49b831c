package hostos

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// TestSpare checks that the spare P appears on request, and disappears between one and two times restAfter after the
// last request. The clock is synctest's.
func TestSpare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var added, reset int
		s := &spare{add: func() { added++ }, reset: func() { reset++ }}
		check := func(when string, wantAdded, wantReset int) {
			t.Helper()
			synctest.Wait()
			s.mu.Lock() // for the race detector
			defer s.mu.Unlock()
			if added != wantAdded || reset != wantReset {
				t.Errorf("%s: added %d times and taken away %d times, want %d and %d", when, added, reset, wantAdded,
					wantReset)
			}
		}
		s.want()
		check("not allowed", 0, 0)
		s.allowed.Store(true)
		check("not wanted", 0, 0)
		for range 100 {
			s.want()
			time.Sleep(restAfter / 10)
		}
		check("wanted", 1, 0)
		time.Sleep(restAfter - 1)
		check("shortly after", 1, 0)
		time.Sleep(restAfter + 1)
		check("not wanted for long", 1, 1)
		time.Sleep(10 * restAfter)
		check("later", 1, 1)
		s.want()
		check("wanted again", 2, 1)
		time.Sleep(2 * restAfter)
		check("not wanted again", 2, 2)
	})
}

// TestSpareOfProcess adds a P to this process and removes it. It is not parallel, because the number is process-wide.
func TestSpareOfProcess(t *testing.T) {
	t.Setenv("GOMAXPROCS", "") // the tests' own setting does not count
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	process.add()
	if got := runtime.GOMAXPROCS(0); got != before+1 {
		t.Errorf("%d processors, want one more than %d", got, before)
	}
	process.reset()
	if got := runtime.GOMAXPROCS(0); got > runtime.NumCPU() {
		t.Errorf("%d processors of %d after it was taken away", got, runtime.NumCPU())
	}
}

// TestAllowSpare has a number that the environment sets be left alone.
func TestAllowSpare(t *testing.T) {
	defer process.allowed.Store(false)
	for set, want := range map[string]bool{"4": false, "": true} {
		process.allowed.Store(false)
		t.Setenv("GOMAXPROCS", set)
		if AllowSpare(); process.allowed.Load() != want {
			t.Errorf("GOMAXPROCS=%q: allowed is %v, want %v", set, !want, want)
		}
	}
}
