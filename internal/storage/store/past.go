package store

import (
	"context"
	"sync/atomic"
)

// past is how much history the embedded etcd has, if Embedded.History bounds that.
type past struct {
	most int64         // 0 is no bound
	cut  atomic.Int64  // the revision at which it begins, or will in a moment
	full chan struct{} // capacity 1: that there is too much need not be said twice
}

func (p *past) begin(rev int64) {
	p.full = make(chan struct{}, 1)
	p.cut.Store(rev)
}

// note takes note that the watch has everything up to rev, and so wants none of it from etcd again.
func (p *past) note(rev int64) {
	if p.most == 0 || rev-p.cut.Load() < 2*p.most {
		return
	}
	p.cut.Store(rev - p.most)
	select {
	case p.full <- struct{}{}:
	default:
	}
}

// tooMuch returns the channel that says that history is to be cut, nil if that is never so.
func (s *Store) tooMuch() <-chan struct{} {
	if l, ok := s.backend.(*local); ok {
		return l.past.full
	}
	return nil
}

// forgetPast cuts history where past says. Horizon stays as it is: the pages of lists that follow are in memory.
func (s *Store) forgetPast(ctx context.Context) error {
	return s.Compact(ctx, s.backend.(*local).past.cut.Load())
}
