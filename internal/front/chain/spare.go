package chain

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A thread in a system call keeps its processor of the runtime's (P), and with it the goroutines that wait for that P,
// until the runtime's monitor has seen it there twice. The monitor looks every 10 ms at the latest, and fdatasync,
// which every write waits for, takes milliseconds: in traces goroutines waited up to 19 ms while the other P was busy
// with large answers. With one P more than processors, those are found sooner. It costs 3 to 7 % of the CPU time of
// each request, so it is there only while short requests run beside large answers.

// restAfter is how long the spare P stays at the least after the last request that asked for it. Each change stops the
// world for some 50 µs.
const restAfter = 10 * time.Second

// spare is the P that a process may have besides those of its processors.
type spare struct {
	allowed atomic.Bool
	asked   atomic.Bool // since the timer last looked

	mu    sync.Mutex // guards on
	on    bool
	add   func() // adds the P
	reset func() // has as many as the runtime would by itself
}

// process is this process's; how many processors the runtime uses is said for the whole process.
var process = spare{
	add: func() { runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1) },
	// The runtime follows the limit of a control group again, which it does not while a number is set.
	reset: runtime.SetDefaultGOMAXPROCS,
}

// AllowSpare allows this process a spare P. Only programs call it: a library must not change what the whole process
// has. It does nothing if the environment sets GOMAXPROCS: the operator's number stays.
func AllowSpare() {
	if os.Getenv("GOMAXPROCS") == "" {
		process.allowed.Store(true)
	}
}

// want says that there are short requests beside large answers now. It may be called at any rate.
func (s *spare) want() {
	if !s.allowed.Load() || s.asked.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked.Store(true)
	if s.on {
		return
	}
	s.on = true
	s.add()
	time.AfterFunc(restAfter, s.look)
}

// look takes the spare P away if no request has asked for it since the last look.
func (s *spare) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked.Swap(false) {
		time.AfterFunc(restAfter, s.look)
		return
	}
	s.on = false
	s.reset()
}
