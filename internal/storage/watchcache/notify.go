package watchcache

import (
	"context"
	"sync"
)

// notifier wakes watchers in a separate goroutine, because waking two hundred goroutines takes as long as applying
// dozens of events. Events during a round cause one wake-up for each watcher, however many there are.
type notifier struct {
	kick chan struct{} // capacity 1
	mu   sync.Mutex
	todo []*Collection // collections changed since the last round, may repeat
}

// notify schedules the wake-up of the collections' sleeping watchers. It does not block.
func (n *notifier) notify(changed []*Collection) {
	sleepers := false
	n.mu.Lock()
	for _, c := range changed {
		if c.wake.Load() != nil || c.parked.count.Load() > 0 || c.wakers.count.Load() > 0 {
			n.todo = append(n.todo, c)
			sleepers = true
		}
	}
	n.mu.Unlock()
	if sleepers {
		select {
		case n.kick <- struct{}{}:
		default:
		}
	}
}

func (n *notifier) run(ctx context.Context) {
	var todo []*Collection
	for {
		select {
		case <-n.kick:
		case <-ctx.Done():
			return
		}
		n.mu.Lock()
		todo, n.todo = n.todo, todo[:0]
		n.mu.Unlock()
		for _, c := range todo {
			c.broadcast()
			c.wakers.wake()
			c.wakeParked()
		}
		clear(todo)
	}
}
