package external

import (
	"context"
	"sync"
	"time"
)

// shared lets concurrent callers share requests for the revision. A caller may only use a request that began after its
// call, or it could miss a write acknowledged in between. So callers that arrive during a request all wait for the next
// one: at most one request runs and one waits.
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

// run sends requests while callers wait. It does not use a caller's context, so that one caller's deadline does not
// fail the others.
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
