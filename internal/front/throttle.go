package front

import (
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
)

// limit counts requests in flight.
type limit struct {
	max int64 // less than zero is no limit
	now atomic.Int64
}

// enter counts one more, unless the limit is reached.
func (l *limit) enter() bool {
	if n := l.now.Add(1); l.max >= 0 && n > l.max {
		l.now.Add(-1)
		return false
	}
	return true
}

func (l *limit) leave() { l.now.Add(-1) }

// throttle limits how many reads and writes run at the same time. Long-running requests do not count, and administrators
// always get in: somebody must be able to repair what causes the load.
func (s *Server) throttle(x *exchange, next func(*exchange)) {
	if x.info.LongRunning() {
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
		next(x)
	case slices.Contains(x.who.GetGroups(), user.SystemPrivilegedGroup):
		next(x)
	default:
		s.fail(x, apierrors.NewTooManyRequests("Too many requests, please try again later.", 1))
	}
}
