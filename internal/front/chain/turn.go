package chain

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Large answers go out in pieces, and a few requests could keep all processors busy with them: the runtime lets a
// goroutine run for 10 ms, and while it always finds one that can run, it looks for requests that have come as rarely.
// So large pieces take turns, one less at a time than there are processors, first come, first served: a short request
// waits for one piece at most, and the last processor waits for the network.
//
// The kernel does to threads what the runtime does to goroutines: one that always has something to write keeps its
// processor to the end of its time slice, 3 to 4 ms, and another of the server's threads that can run, with a short
// request, waits for that. So while there are short requests, every now and then a piece begins with an offer of the
// processor to other threads, and the runtime has a spare one (spare.go).

const (
	// largePiece is how many bytes of an answer at once need a turn. It is below the pieces of lists.
	largePiece = 32 << 10
	// turnTime is how long a turn lasts. Writing a piece takes less, unless the client does not take it.
	turnTime = 500 * time.Microsecond
	// yieldEvery is how often a processor is offered. At each piece, which is 0.1 ms, lists take a quarter more CPU
	// time: server and client take turns on one processor then. At this pace it is a twentieth.
	yieldEvery = time.Millisecond
	// yieldFor is how long after a short request processors are still offered: those who only list pay nothing.
	yieldFor = 500 * time.Millisecond
)

// turns are the turns of a server.
type turns struct {
	taken   chan struct{} // it has as many elements as pieces are being written
	yield   func()        // lets other threads run
	spare   func()        // asks for one more of the runtime's processors
	began   time.Time     // what the following count from
	yielded atomic.Int64  // when a processor was last offered
	short   atomic.Int64  // when a short request last ended beside a large piece; 0 if none has
}

func newTurns() *turns {
	return &turns{taken: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1)), yield: yieldThread,
		spare: process.want, began: time.Now()}
}

// offer offers this thread's processor to other threads if it is time to. Who runs where is not known: the offers are
// made as often as there are turns, by whichever piece is next.
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

// ended notes that a request whose answer had no large piece has ended.
func (t *turns) ended() {
	if len(t.taken) > 0 {
		t.short.Store(int64(time.Since(t.began)))
	}
}

// turn is that of one answer.
type turn struct {
	of    *turns
	mu    sync.Mutex // guards the following
	timer *time.Timer
	held  bool
}

// take waits for a turn; false if ctx ends first.
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
	runtime.Gosched() // the goroutine that gets the turn would run before all others that can
	t.of.offer()      // behind that, when few goroutines are bound to this thread
	return true
}

// give ends the turn, if it has not ended by itself.
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
