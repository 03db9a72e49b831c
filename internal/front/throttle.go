package front

import (
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// limit counts requests in flight.
type limit struct {
	max     int64 // less than zero is no limit
	now     atomic.Int64
	waiting atomic.Int64 // of those that were let in, how many wait for a webhook and do not count
}

// waitFactor times max requests may wait without being counted: each holds its objects in memory.
const waitFactor = 8

// enter counts one more, unless the limit is reached.
func (l *limit) enter() bool {
	if n := l.now.Add(1); l.max >= 0 && n > l.max {
		l.now.Add(-1)
		return false
	}
	return true
}

func (l *limit) leave() { l.now.Add(-1) }

// waits has a request that was let in give its place to another one while it waits for a webhook. When that has
// answered, it goes on at once, even if there are more than max then.
func (l *limit) waits(w *request.Waits) {
	gone := false // its place is another request's
	w.Begin = func() {
		if n := l.waiting.Add(1); n > waitFactor*l.max {
			l.waiting.Add(-1)
			return
		}
		gone = true
		l.leave()
	}
	w.End = func() {
		if gone {
			gone = false
			l.waiting.Add(-1)
			l.now.Add(1)
		}
	}
}

// throttle limits how many reads and writes run at the same time. Long-running requests do not count, nor do those
// that wait for a webhook, and administrators always get in, to repair what causes the load.
func (s *Server) throttle(x *exchange, next func(*exchange)) {
	if x.longRunning {
		next(x)
		return
	}
	l := &s.reads
	if x.info.Mutating() {
		l = &s.writes
	}
	switch {
	case l.enter():
		defer l.leave()
		if l.max >= 0 {
			l.waits(&x.scope.Waits)
		}
		next(x)
	case slices.Contains(x.who.GetGroups(), user.SystemPrivilegedGroup):
		next(x)
	default:
		s.fail(x, apierrors.NewTooManyRequests("Too many requests, please try again later.", 1))
	}
}
