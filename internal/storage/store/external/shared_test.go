package external

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// TestShared checks that no caller gets the result of a request that began before its call.
func TestShared(t *testing.T) {
	t.Parallel()
	var clock, flights atomic.Int64
	s := &shared{fetch: func(context.Context) (int64, error) {
		flights.Add(1)
		return clock.Load(), nil
	}}
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range 500 {
				before := clock.Add(1)
				if got, err := s.get(context.Background()); err != nil || got < before {
					t.Errorf("got %d, %v; before the call it was %d", got, err, before)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d requests for %d callers", flights.Load(), 32*500)

	// Callers that arrive during a request share the next.
	block, started := make(chan struct{}), make(chan struct{}, 8)
	s = &shared{fetch: func(context.Context) (int64, error) {
		started <- struct{}{}
		<-block
		return 1, nil
	}}
	wg.Go(func() { s.get(context.Background()) })
	<-started
	var queued sync.WaitGroup
	for range 10 {
		queued.Add(1)
		wg.Go(func() {
			s.mu.Lock()
			if s.next == nil {
				s.next = &flight{done: make(chan struct{})}
			}
			s.mu.Unlock()
			queued.Done()
			s.get(context.Background())
		})
	}
	queued.Wait()
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.get(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gave up: %v", err)
	}
	close(block)
	wg.Wait()
	if len(started) > 1 {
		t.Errorf("%d more requests for those who waited, want 1", len(started))
	}
}
