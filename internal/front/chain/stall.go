package chain

import (
	"context"
	"sync"
	"time"

	"github.com/bowsprit/bowsprit/internal/request"
)

// patience is how long a piece of an answer may take to be written before its request lends its seats: a client that
// reads slowly must not keep others out. Sending 64 KiB to one that reads takes well below a millisecond.
const patience = 10 * time.Millisecond

// stall watches the writes of one answer. Its timer is made at the first.
type stall struct {
	mu      sync.Mutex // guards the following; held while the seats are lent
	waits   *request.Waits
	timer   *time.Timer
	writing bool
	lent    bool
}

// begin notes that something is being written.
func (s *stall) begin(w *request.Waits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits, s.writing = w, true
	if s.timer == nil {
		s.timer = time.AfterFunc(patience, s.late)
	} else {
		s.timer.Reset(patience)
	}
}

// late runs in a goroutine of the timer. One that comes late itself lends the seats early, which does no harm.
func (s *stall) late() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing && !s.lent {
		s.lent = true
		s.waits.Begin()
	}
}

// end notes that it has been written. A request that has lent its seats goes on when it is its turn again, or ctx ends.
func (s *stall) end(ctx context.Context) {
	s.mu.Lock()
	s.timer.Stop()
	s.writing = false
	lent := s.lent
	s.lent = false
	s.mu.Unlock()
	if lent {
		s.waits.EndInTurn(ctx)
	}
}
