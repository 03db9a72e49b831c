package chain

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bowsprit/bowsprit/internal/front/hostos"
)

// Large responses are written in pieces, and a few such requests could keep all CPUs busy: the runtime lets a goroutine
// run for 10 ms, and as long as it finds runnable goroutines it polls for new requests equally rarely. So large pieces
// take turns in order of arrival. The number of turns is one less than the number of CPUs: a short request waits for at
// most one piece, and the last CPU serves the network.
//
// The kernel schedules threads in the same way: a thread that always has something to write keeps its CPU for a time
// slice of 3 to 4 ms, while another thread of the server with a short request waits. So while there are short requests,
// some pieces first yield the CPU to other threads, and the runtime has a spare P (package hostos).

const (
	// largePiece is the size of a write from which it needs a turn. It is below the size of the pieces of lists.
	largePiece = 32 << 10
	// turnTime limits the duration of a turn. Writing a piece takes less, unless the client does not read.
	turnTime = 500 * time.Microsecond
	// yieldEvery is the interval of yielding. Yielding before each piece (every 0.1 ms) adds a quarter to the CPU time
	// of lists, because server and client then alternate on one CPU. At this interval it adds a twentieth.
	yieldEvery = time.Millisecond
	// yieldFor is how long after a short request pieces still yield: a load of lists alone pays nothing.
	yieldFor = 500 * time.Millisecond
)

// turns manages the turns of a server.
type turns struct {
	taken   chan struct{} // one element for each piece being written
	yield   func()        // lets other threads run
	spare   func()        // requests a spare P
	began   time.Time     // base of the following times
	yielded atomic.Int64  // time of the last yield
	short   atomic.Int64  // time at which a short request last ended beside a large piece; 0 if none has
}

func newTurns() *turns {
	return &turns{taken: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1)), yield: hostos.YieldThread,
		spare: hostos.WantSpare, began: time.Now()}
}

// offer yields this thread's CPU to other threads if it is due. The mapping of goroutines to CPUs is unknown, so the
// next piece yields, as often as there are turns.
func (t *turns) offer() {
	last, now := t.yielded.Load(), int64(time.Since(t.began))
	if now-last < int64(yieldEvery)/int64(cap(t.taken)) {
		return
	}
	if short := t.short.Load(); short > 0 && now-short < int64(yieldFor) && t.yielded.CompareAndSwap(last, now) {
		t.spare()
		t.yield()
	}
}

// ended records the end of a request without a large piece.
func (t *turns) ended() {
	if len(t.taken) > 0 {
		t.short.Store(int64(time.Since(t.began)))
	}
}

// turn is the turn of one response.
type turn struct {
	of    *turns
	mu    sync.Mutex // guards the following
	timer *time.Timer
	held  bool
}

// take waits for a turn; it returns false if ctx ends first.
func (t *turn) take(ctx context.Context) bool {
	select {
	case t.of.taken <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	t.mu.Lock()
	t.held = true
	if t.timer == nil {
		t.timer = time.AfterFunc(turnTime, t.give)
	} else {
		t.timer.Reset(turnTime)
	}
	t.mu.Unlock()
	runtime.Gosched() // else the next goroutine with a turn would run before all other runnable goroutines
	t.of.offer()      // after that, if few goroutines are bound to this thread
	return true
}

// give ends the turn, unless it has timed out.
func (t *turn) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held {
		t.held = false
		<-t.of.taken
	}
}

// end ends the turn when its piece has been written.
func (t *turn) end() {
	t.timer.Stop()
	t.give()
}
