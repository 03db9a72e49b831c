package chain

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// patience is how long a piece of an answer may take to be written, up to twice as long, before its request lends its
// seats: a client that reads slowly must not keep others out. Sending 64 KiB to one that reads takes well below a
// millisecond.
const patience = 10 * time.Millisecond

// stalls watches the writes of all answers. What one that takes long has to do is done by a timer that looks at all of
// them: a timer for each, which hardly any needs, would cost a short answer more than its other steps do.
type stalls struct {
	mu    sync.Mutex
	first *stall // of those that are being written and have not been found to be late, linked
	timer *time.Timer
	timed bool // it is set
}

// stall is a write of an answer. It lends the request's seats when it takes long, and sees to it that the write ends
// with the request's deadline. stalls.mu guards it.
type stall struct {
	x             *exchange
	before, after *stall
	listed        bool
	seen          bool        // it was there when the timer last looked
	lent          bool        // it has lent the seats
	stopEnd       func() bool // what ends x.endWrite; nil if that has not been asked for
}

// begin notes that something is being written.
func (a *stalls) begin(s *stall) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.listed, s.seen, s.before, s.after = true, false, nil, a.first
	if a.first != nil {
		a.first.before = s
	}
	a.first = s
	if !a.timed {
		a.setLocked()
	}
}

func (a *stalls) setLocked() {
	a.timed = true
	if a.timer == nil {
		a.timer = time.AfterFunc(patience, a.look)
	} else {
		a.timer.Reset(patience)
	}
}

// look runs in a goroutine of the timer, which is set anew as long as something is being written.
func (a *stalls) look() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for s := a.first; s != nil; {
		next := s.after
		if s.seen {
			a.removeLocked(s)
			s.late()
		}
		s.seen = true
		s = next
	}
	a.timed = false
	if a.first != nil {
		a.setLocked()
	}
}

// end notes that it has been written, and reports whether the request lent its seats meanwhile.
func (a *stalls) end(s *stall) (lent bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.listed {
		a.removeLocked(s)
	}
	lent, s.lent = s.lent, false
	return lent
}

func (a *stalls) removeLocked(s *stall) {
	if s.before == nil {
		a.first = s.after
	} else {
		s.before.after = s.after
	}
	if s.after != nil {
		s.after.before = s.before
	}
	s.listed, s.before, s.after = false, nil, nil
}

func (s *stall) late() {
	if s.x.lends() {
		s.lent = true
		s.x.scope.Waits.Begin()
	}
	if s.x.ctx != nil && s.stopEnd == nil {
		s.stopEnd = context.AfterFunc(s.x.ctx, s.x.endWrite)
	}
}

// done ends the work of an exchange's stall when the answer is complete, and reports whether x.endWrite may have been
// called.
func (a *stalls) done(s *stall) (asked bool) {
	a.mu.Lock()
	stop := s.stopEnd
	s.stopEnd = nil
	a.mu.Unlock()
	if stop != nil {
		stop()
	}
	return stop != nil
}

// lends reports whether others may want the request's seats.
func (x *exchange) lends() bool { return x.shared != nil && x.shared.ticket.Lends() }

// watched does what may wait for a client that reads slowly. A request that has lent its seats goes on when it is its
// turn again, or its context ends.
func (x *exchange) watched(write func() error) error {
	if x.written <= stallAfter || x.ctx == nil && !x.lends() {
		return write()
	}
	if x.written > largePiece && x.expired() {
		return http.ErrHandlerTimeout
	}
	x.stall.x = x
	x.chain.stalls.begin(&x.stall)
	defer func() {
		if x.chain.stalls.end(&x.stall) {
			x.scope.Waits.EndInTurn(x.r.Context())
		}
	}()
	return write()
}
