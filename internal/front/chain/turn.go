package chain

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// Large answers go out in pieces, and a few requests could keep all processors busy with them: the runtime lets a
// goroutine run for 10 ms, and while it always finds one that can run, it looks for requests that have come as rarely.
// So large pieces take turns, one less at a time than there are processors, first come, first served: a short request
// waits for one piece at most, and the last processor waits for the network.

const (
	// largePiece is how many bytes of an answer at once need a turn. It is below the pieces of lists.
	largePiece = 32 << 10
	// turnTime is how long a turn lasts. Writing a piece takes less, unless the client does not take it.
	turnTime = 500 * time.Microsecond
)

// turns are the turns of a server: it has as many elements as pieces are being written.
type turns chan struct{}

func newTurns() turns { return make(turns, max(1, runtime.GOMAXPROCS(0)-1)) }

// turn is that of one answer.
type turn struct {
	of    turns
	mu    sync.Mutex // guards the following
	timer *time.Timer
	held  bool
}

// take waits for a turn; false if ctx ends first.
func (t *turn) take(ctx context.Context) bool {
	select {
	case t.of <- struct{}{}:
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
	return true
}

// give ends the turn, if it has not ended by itself.
func (t *turn) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held {
		t.held = false
		<-t.of
	}
}

// end ends the turn when its piece has been written.
func (t *turn) end() {
	t.timer.Stop()
	t.give()
}
