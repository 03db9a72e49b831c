package chain

import (
	"context"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
)

// limit counts requests in flight.
type limit struct {
	max     int64 // negative means no limit
	now     atomic.Int64
	waiting atomic.Int64 // number of admitted requests that wait for a webhook and do not count
}

// waitFactor times max requests may wait without being counted: each holds its objects in memory.
const waitFactor = 8

// enter counts a request and returns true, unless the limit is reached.
func (l *limit) enter() bool {
	if n := l.now.Add(1); l.max >= 0 && n > l.max {
		l.now.Add(-1)
		return false
	}
	return true
}

func (l *limit) leave() { l.now.Add(-1) }

// slot is a request's share of a limit: its request.Seat. While the request waits, another request may use the slot.
// Afterwards the request continues at once, even if that exceeds max.
type slot struct {
	limit *limit
	gone  bool // another request uses it
}

// Pause implements request.Seat.
func (p *slot) Pause() {
	l := p.limit
	if n := l.waiting.Add(1); n > waitFactor*l.max {
		l.waiting.Add(-1)
		return
	}
	p.gone = true
	l.leave()
}

// Resume implements request.Seat.
func (p *slot) Resume() {
	if p.gone {
		p.gone = false
		p.limit.waiting.Add(-1)
		p.limit.now.Add(1)
	}
}

// Return implements request.Seat: no request waits for a place.
func (p *slot) Return(context.Context) { p.Resume() }

// Yield implements request.Seat, see Return.
func (p *slot) Yield(context.Context) {}

// Release implements request.Seat. It does nothing: long-running requests have no place.
func (p *slot) Release() {}

// throttle limits the number of concurrent reads and writes. Long-running requests do not count, nor do requests that
// wait for a webhook. Administrators always get in, so that they can repair the cause of an overload.
func (c *Chain) throttle(x *exchange, next func(*exchange)) {
	if x.longRunning {
		next(x)
		return
	}
	l := &c.reads
	if x.info.Mutating() {
		l = &c.writes
	}
	switch {
	case l.enter():
		defer l.leave()
		if l.max >= 0 {
			x.scope.Waits.Seat = &slot{limit: l}
		}
		next(x)
	case slices.Contains(x.user.GetGroups(), user.SystemPrivilegedGroup):
		next(x)
	default:
		c.fail(x, apierrors.NewTooManyRequests("Too many requests, please try again later.", 1))
	}
}
