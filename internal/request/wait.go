package request

import (
	"context"
	"sync"
)

// Seat is what a request has of the server's capacity while it runs.
type Seat interface {
	// Pause lends it to other requests, and Resume takes it back, at once; Return does so too, but waits until others
	// have had their turn, or ctx ends. Pause and one of the two are called in turn.
	Pause()
	Resume()
	Return(ctx context.Context)
	// Release gives it back for good. Nothing is called after it.
	Release()
}

// Waits lets a request say that it waits for a webhook, or for its client to read. What waits needs nothing of the
// server but memory, so package front does not count it among the requests that run: those of one webhook that does
// not answer must not keep out all others.
type Waits struct {
	// Seat is lent when the first of the waits that overlap begins, until the last has ended. It is set before the
	// request is handled; nil if there is none.
	Seat Seat

	mu  sync.Mutex
	now int // waits that have not ended
}

// Wait notes that the request that ctx belongs to waits until the function that it returns is called, once. It is safe
// for concurrent use; outside of a request it does nothing.
func Wait(ctx context.Context) (done func()) {
	s := ScopeOf(ctx)
	if s == nil || s.Waits.Seat == nil {
		return func() {}
	}
	s.Waits.Begin()
	return s.Waits.End
}

// Release gives back for good what the request that ctx belongs to has of the server's capacity: because it goes on
// without costing anything by itself, as a watch does that has sent what was there. It is called in the request's
// goroutine.
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

// EndInTurn is End for one that can wait longer: it waits until it is the request's turn to go on, or ctx ends. There
// is no other wait meanwhile, and the caller holds nothing that another request may wait for.
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
