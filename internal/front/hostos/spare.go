package hostos

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A thread in a system call keeps its runtime processor (P), and with it the goroutines that wait for that P, until the
// runtime's monitor has seen it there twice. The monitor polls at least every 10 ms. fdatasync, for which every write
// waits, takes milliseconds: in traces goroutines waited up to 19 ms while the other P was busy with large responses. A
// spare P finds these goroutines sooner. It costs 3 to 7 % of the CPU time of each request, so it exists only while
// short requests run beside large responses.

// restAfter is the minimum time that the spare P stays after the last request for it. Each change stops the world for
// about 50 µs.
const restAfter = 10 * time.Second

// spare controls one P beyond the number of CPUs.
type spare struct {
	allowed   atomic.Bool
	requested atomic.Bool // since the timer last ran

	mu    sync.Mutex // guards on
	on    bool
	add   func() // adds the P
	reset func() // restores the runtime's default
}

// process is the spare of this process; GOMAXPROCS is process-wide.
var process = spare{
	add: func() { runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1) },
	// After this the runtime follows the limit of a control group again, as it does not while a number is set.
	reset: runtime.SetDefaultGOMAXPROCS,
}

// AllowSpare allows a spare P in this process. Only programs call it: a library must not change process-wide settings.
// If the environment sets GOMAXPROCS, AllowSpare does nothing, so the operator's number stays.
func AllowSpare() {
	if os.Getenv("GOMAXPROCS") == "" {
		process.allowed.Store(true)
	}
}

// WantSpare requests the spare P of this process, because short requests run beside large responses. Calls may be
// frequent. Without AllowSpare it does nothing.
func WantSpare() { process.want() }

// want requests the spare P.
func (s *spare) want() {
	if !s.allowed.Load() || s.requested.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requested.Store(true)
	if s.on {
		return
	}
	s.on = true
	s.add()
	time.AfterFunc(restAfter, s.look)
}

// look removes the spare P if it was not requested since the last look.
func (s *spare) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requested.Swap(false) {
		time.AfterFunc(restAfter, s.look)
		return
	}
	s.on = false
	s.reset()
}
