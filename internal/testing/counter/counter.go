// Package counter counts events of tests and waits for them without polling.
package counter

import (
	"context"
	"sync"
)

// Counter counts the events of one goroutine for others. The zero value has counted none. It is safe for concurrent
// use.
type Counter struct {
	mu      sync.Mutex
	n       int
	changed chan struct{} // closed by the next Add; nil if nothing waits
}

// Add counts one event.
func (c *Counter) Add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// WaitMore waits until n more events are counted, or returns the reason why ctx has ended.
func (c *Counter) WaitMore(ctx context.Context, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for goal := c.n + n; c.n < goal; {
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		c.mu.Lock()
		if ctx.Err() != nil && c.n < goal {
			return context.Cause(ctx)
		}
	}
	return nil
}
