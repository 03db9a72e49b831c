package store

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Compact forgets the history before rev. Reads and watches at or after rev are not disturbed.
func (s *Store) Compact(ctx context.Context, rev int64) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	_, err := s.client.Compact(ctx, rev)
	if errors.Is(err, rpctypes.ErrCompacted) { // another replica was faster
		return nil
	}
	return readError(err)
}

// compactor remembers where history may be cut next.
type compactor struct{ next int64 }

// compactEvery compacts, at each interval, to the revision of the interval before: between one and two intervals of
// history are always there. Replicas on one etcd do so independently; the later cut only finds less to do.
func (s *Store) compactEvery(interval time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-s.done
		cancel()
	}()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
		if err := s.compactTick(ctx); err != nil && !ended(ctx, err) {
			s.log.Warn("compaction of etcd's history failed; it is tried again later", "error", err, "after", interval)
		}
	}
}

func (s *Store) compactTick(ctx context.Context) error {
	cut := s.compactor.next
	rev, err := s.Revision(ctx)
	if err != nil {
		return err
	}
	s.compactor.next = rev
	if cut == 0 || cut == rev {
		return nil
	}
	return s.Compact(ctx, cut)
}
