package request

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Timed is the context of a request with a deadline; it carries the request's Scope. Most reads are served from memory
// and never wait, so the timer and the channel are created on the first call of Done. A Timed is used once: Begin
// first, End after the response.
type Timed struct {
	context.Context // the parent
	scope           *Scope
	at              time.Time

	mu     sync.Mutex // guards the following
	err    error      // the reason it has ended, if that happened before the timer was created; else nil
	timer  context.Context
	cancel context.CancelFunc
}

var _ context.Context = (*Timed)(nil)

// Begin initializes c as the context of a request, which ends at the given time or when parent ends.
func (c *Timed) Begin(parent context.Context, s *Scope, at time.Time) {
	c.Context, c.scope, c.at = parent, s, at
}

// End ends the context and reports whether its deadline had passed. It may be called again.
func (c *Timed) End() (late bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if c.timer != nil {
		err = c.timer.Err()
		c.cancel()
	} else if err = c.endedLocked(); err == nil {
		c.err = context.Canceled
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// Pending reports whether a caller has called Done and may still wait for it.
func (c *Timed) Pending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timer != nil
}

// Deadline implements context.Context.
func (c *Timed) Deadline() (time.Time, bool) {
	if earlier, ok := c.Context.Deadline(); ok && earlier.Before(c.at) {
		return earlier, true
	}
	return c.at, true
}

// Done implements context.Context.
func (c *Timed) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer == nil {
		c.waitLocked()
	}
	return c.timer.Done()
}

// waitLocked creates the context with the timer, or an ended context that agrees with earlier results of Err.
func (c *Timed) waitLocked() {
	switch c.endedLocked() {
	case nil:
		c.timer, c.cancel = context.WithDeadline(c.Context, c.at)
	case context.DeadlineExceeded: // even if the parent has ended since
		c.timer, c.cancel = context.WithDeadline(context.WithoutCancel(c.Context), c.at)
	default:
		c.timer, c.cancel = context.WithCancel(c.Context)
		c.cancel()
	}
}

// Err implements context.Context.
func (c *Timed) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		return c.timer.Err()
	}
	return c.endedLocked()
}

// endedLocked returns how it has ended, without a timer.
func (c *Timed) endedLocked() error {
	if c.err == nil {
		if c.err = c.Context.Err(); c.err == nil && time.Since(c.at) >= 0 {
			c.err = context.DeadlineExceeded
		}
	}
	return c.err
}

// Value implements context.Context.
func (c *Timed) Value(key any) any {
	if key == (scopeKey{}) {
		return c.scope
	}
	c.mu.Lock()
	if c.timer == nil && c.err != nil {
		c.waitLocked() // the parent may end later, for another cause
	}
	timer := c.timer
	c.mu.Unlock()
	if timer != nil {
		return timer.Value(key) // package context looks up the parent of children, and the cause, this way
	}
	return c.Context.Value(key)
}
