package request

import (
	"context"
	"sync"
)

// Waits lets a request say that it waits for a webhook. What waits needs nothing of the server but
// memory, so package front does not count it among the requests that run: those of one webhook that does not answer
// must not keep out all others.
type Waits struct {
	// Begin and End are called when the first of the waits that overlap begins and when the last has ended, in turn;
	// nil functions are not called.
	Begin, End func()

	mu  sync.Mutex
	now int // waits that have not ended
}

// Wait notes that the request that ctx belongs to waits until the function that it returns is called, once. It is safe
// for concurrent use; outside of a request it does nothing.
func Wait(ctx context.Context) (done func()) {
	s := ScopeOf(ctx)
	if s == nil || s.Waits.Begin == nil {
		return func() {}
	}
	s.Waits.add(1)
	return func() { s.Waits.add(-1) }
}

func (w *Waits) add(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.now
	switch w.now += n; {
	case before == 0:
		w.Begin()
	case w.now == 0:
		w.End()
	}
}
