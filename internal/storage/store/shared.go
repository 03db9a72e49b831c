package store

import (
	"context"
	"sync"
	"time"
)

// shared lets any number of callers share requests for the revision. A caller may only use a request that began after
// it called, or it could miss a write that was acknowledged in between. So those who arrive while a request is under
// way wait for the next one, all together: there are never more than one under way and one waiting.
type shared struct {
	fetch func(context.Context) (int64, error)

	mu      sync.Mutex
	running bool
	next    *flight // joined by callers that arrive now
}

type flight struct {
	done chan struct{} // closed when rev and err are set
	rev  int64
	err  error
}

func (s *shared) get(ctx context.Context) (int64, error) {
	s.mu.Lock()
	f := s.next
	if f == nil {
		f = &flight{done: make(chan struct{})}
		s.next = f
	}
	if !s.running {
		s.running = true
		go s.run()
	}
	s.mu.Unlock()
	select {
	case <-f.done:
		return f.rev, f.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// run flies until no caller waits. Flights do not use a caller's context: one caller's hurry must not fail the others.
func (s *shared) run() {
	for {
		s.mu.Lock()
		f := s.next
		s.next = nil
		s.running = f != nil
		s.mu.Unlock()
		if f == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		f.rev, f.err = s.fetch(ctx)
		cancel()
		close(f.done)
	}
}
