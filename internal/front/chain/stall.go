package chain

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// patience is how long a write may take, up to twice as long, before its request lends its seats: a slow client must
// not keep other requests out. Sending 64 KiB to a client that reads takes well below a millisecond.
const patience = 10 * time.Millisecond

// stalls watches the writes of all responses. One timer handles all slow writes: a timer for each write, which almost
// none needs, would cost a short response more than all other steps.
type stalls struct {
	mu    sync.Mutex
	first *stall // linked list of current writes that are not late yet
	timer *time.Timer
	timed bool // the timer is set
}

// stall is a write of a response. If it takes long, it lends the request's seats and schedules the end of the write at
// the request's deadline. stalls.mu guards it.
type stall struct {
	x             *exchange
	before, after *stall
	linked        bool
	seen          bool        // it existed when the timer last ran
	lent          bool        // it has lent the seats
	stopEnd       func() bool // cancels x.endWrite; nil if that is not scheduled
}

// begin notes that something is being written.
func (a *stalls) begin(s *stall) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.linked, s.seen, s.before, s.after = true, false, nil, a.first
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

// look runs in the timer's goroutine and resets the timer while writes are in progress.
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
	if s.linked {
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
	s.linked, s.before, s.after = false, nil, nil
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

// done ends the stall of a completed exchange, and reports whether x.endWrite may have run.
func (a *stalls) done(s *stall) (cancelled bool) {
	a.mu.Lock()
	stop := s.stopEnd
	s.stopEnd = nil
	a.mu.Unlock()
	if stop != nil {
		stop()
	}
	return stop != nil
}

// lends reports whether other requests may want this request's seats.
func (x *exchange) lends() bool { return x.shared != nil && x.shared.ticket.Lends() }

// watched runs a write that may block on a slow client. If the request has lent its seats meanwhile, it waits for its
// turn to continue, or until its context ends.
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
