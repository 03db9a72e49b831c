package request

import (
	"context"
	"runtime"
	"sync"
)

// Seat is a request's share of the server's capacity while it runs.
type Seat interface {
	// Pause lends the seat to other requests, and Resume takes it back at once. Return takes it back after waiting for
	// its turn, or until ctx ends. Each Pause is followed by one of the two.
	Pause()
	Resume()
	Return(ctx context.Context)
	// Yield lends the seat to waiting requests for a turn, if the request has run for long, or until ctx ends.
	Yield(ctx context.Context)
	// Release gives the seat back for good; it is the last call.
	Release()
}

// Waits tracks whether a request waits for a webhook, or for its client to read. A waiting request uses only memory, so
// package front does not count it as running: otherwise the requests behind one slow webhook would block all others.
type Waits struct {
	// Seat is lent from the start of the first of several overlapping waits to the end of the last. It is set before
	// the request is handled; nil if there is none.
	Seat Seat

	mu  sync.Mutex
	now int // number of current waits
}

// Wait marks the request of ctx as waiting until the returned function is called, once. It is safe for concurrent use;
// outside of a request it does nothing.
func Wait(ctx context.Context) (done func()) {
	s := ScopeOf(ctx)
	if s == nil || s.Waits.Seat == nil {
		return func() {}
	}
	s.Waits.Begin()
	return s.Waits.End
}

// Yield gives waiting requests a turn between two pieces of a long computation: it lends them the seat of the request
// of ctx, and the processor. Call it in the request's goroutine, which holds nothing that another request may wait for.
func Yield(ctx context.Context) {
	if s := ScopeOf(ctx); s != nil && s.Waits.Seat != nil {
		s.Waits.Seat.Yield(ctx)
	}
	runtime.Gosched()
}

// Release gives up the seat of the request of ctx for good, because the request continues at no cost, like a watch that
// has sent its initial state. Call it in the request's goroutine.
func Release(ctx context.Context) {
	if s := ScopeOf(ctx); s != nil {
		s.Waits.Release()
	}
}

// Begin notes that a wait begins.
func (w *Waits) Begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now++; w.now == 1 && w.Seat != nil {
		w.Seat.Pause()
	}
}

// End notes that a wait has ended.
func (w *Waits) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now--; w.now == 0 && w.Seat != nil {
		w.Seat.Resume()
	}
}

// EndInTurn is End for a wait that can be extended: it waits for the request's turn, or until ctx ends. Meanwhile the
// request has no other wait and holds nothing that another request may wait for.
func (w *Waits) EndInTurn(ctx context.Context) {
	w.mu.Lock()
	w.now--
	seat := w.Seat
	last := w.now == 0 && seat != nil
	w.mu.Unlock()
	if last {
		seat.Return(ctx)
	}
}

// Release is the function of that name.
func (w *Waits) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Seat != nil {
		w.Seat.Release()
		w.Seat = nil
	}
}
