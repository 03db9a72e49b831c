package chain

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// patience is how long a piece of an answer may take to be written before its request lends its seats: a client that
// reads slowly must not keep others out. Sending 64 KiB to one that reads takes well below a millisecond.
const patience = 10 * time.Millisecond

// stall watches the writes of one answer: what one that takes long has to do is done by its timer, so that those that
// do not, nearly all, cost next to nothing. It lends the request's seats, and sees to it that the write ends with the
// request's deadline.
type stall struct {
	mu      sync.Mutex  // guards the following; held while the seats are lent
	x       *exchange   // nil while nothing is being written
	timer   *time.Timer // made at the first write
	lent    bool
	stopEnd func() bool // what ends x.endWrite; nil if that has not been asked for
}

// begin notes that something is being written.
func (s *stall) begin(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.x = x
	if s.timer == nil {
		s.timer = time.AfterFunc(patience, s.late)
	} else {
		s.timer.Reset(patience)
	}
}

// late runs in a goroutine of the timer. One that comes late itself, in a later write, lends the seats early, which
// does no harm.
func (s *stall) late() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.x == nil {
		return
	}
	if s.x.lends() && !s.lent {
		s.lent = true
		s.x.scope.Waits.Begin()
	}
	if s.x.ctx != nil && s.stopEnd == nil {
		s.stopEnd = context.AfterFunc(s.x.ctx, s.x.endWrite)
	}
}

// end notes that it has been written. A request that has lent its seats goes on when it is its turn again, or its
// context ends.
func (s *stall) end() {
	s.mu.Lock()
	s.timer.Stop()
	x, lent := s.x, s.lent
	s.x, s.lent = nil, false
	s.mu.Unlock()
	if lent {
		x.scope.Waits.EndInTurn(x.r.Context())
	}
}

// done ends its work when the answer is complete, and reports whether x.endWrite may have been called.
func (s *stall) done() (asked bool) {
	s.mu.Lock()
	stop := s.stopEnd
	s.stopEnd = nil
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
	return stop != nil
}

// newStall returns a stall, perhaps one with a timer that another answer is done with.
func (c *Chain) newStall() *stall {
	if s, ok := c.stalls.Get().(*stall); ok {
		return s
	}
	return new(stall)
}

// lends reports whether others may want the request's seats.
func (x *exchange) lends() bool { return x.shared != nil && x.shared.ticket.Lends() }

// watched does what may wait for a client that reads slowly.
func (x *exchange) watched(write func() error) error {
	if x.written <= stallAfter || x.ctx == nil && !x.lends() {
		return write()
	}
	if x.written > largePiece && x.expired() {
		return http.ErrHandlerTimeout
	}
	if x.stall == nil {
		x.stall = x.chain.newStall()
	}
	x.stall.begin(x)
	defer x.stall.end()
	return write()
}
