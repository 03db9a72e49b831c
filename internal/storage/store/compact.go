package store

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/bowsprit/bowsprit/internal/storage/format"
)

// Compact forgets the history before rev. Reads and watches at or after rev are not disturbed.
func (s *Store) Compact(ctx context.Context, rev int64) error {
	err := s.backend.Compact(ctx, rev)
	if errors.Is(err, ErrCompacted) { // another replica was faster
		return nil
	}
	return err
}

// Horizon returns the oldest readable revision, between one and two compaction intervals old; 0 before the second tick.
// The memory may reach further back, but continue tokens must expire: clients of Kubernetes rely on that error.
func (s *Store) Horizon() int64 { return s.horizon.Load() }

// compactor holds the state of periodic compaction.
type compactor struct {
	next int64 // the revision at the last tick; 0 before the first
	// version is the version of compactKey at the last tick. The replica that finds it unchanged at the next tick
	// compacts.
	version int64
}

// compactKey coordinates compaction between the API servers on one etcd. The key and its meaning are kube-apiserver's,
// so that both can share an etcd and compact its history once.
const compactKey = "compact_rev_key"

// tick compacts to the revision of the previous tick. So between one and two intervals of history remain, for the pages
// of lists and for watches that have lost their connection.
func (s *Store) tick(ctx context.Context) error {
	if s.shared {
		return s.compactTogether(ctx)
	}
	return s.compactAlone(ctx)
}

func (s *Store) compactAlone(ctx context.Context) error {
	cut := s.compactor.next
	rev, err := s.Revision(ctx)
	if err != nil {
		return err
	}
	s.compactor.next = rev
	s.horizon.Store(cut)
	if cut == 0 || cut == rev {
		return nil
	}
	return s.Compact(ctx, cut)
}

// compactTogether runs a round of kube-apiserver's protocol. All replicas try to write compactKey at the version they
// remember. One succeeds and compacts to the revision of its previous round; the others remember the new version.
func (s *Store) compactTogether(ctx context.Context) error {
	c := &s.compactor
	resp, err := s.backend.Commit(ctx, &etcdserverpb.TxnRequest{
		Compare: []*etcdserverpb.Compare{{
			Key: []byte(compactKey), Target: etcdserverpb.Compare_VERSION, Result: etcdserverpb.Compare_EQUAL,
			TargetUnion: &etcdserverpb.Compare_Version{Version: c.version},
		}},
		Success: []*etcdserverpb.RequestOp{put(compactKey, strconv.AppendInt(nil, c.next, 10), 0)},
		Failure: []*etcdserverpb.RequestOp{look(compactKey)},
	})
	if err != nil {
		return err
	}
	cut := c.next
	c.next = resp.Header.Revision
	s.horizon.Store(cut) // whichever replica compacts
	if !resp.Succeeded {
		if kvs := resp.Responses[0].GetResponseRange().GetKvs(); len(kvs) > 0 {
			c.version = kvs[0].Version
		} else {
			c.version = 0 // the key was deleted
		}
		return nil
	}
	c.version++
	if cut == 0 { // the first round only starts the count
		return nil
	}
	return s.Compact(ctx, cut)
}

// careEvery compacts history at each interval and looks at the format mark of a shared etcd, until the store is closed.
func (s *Store) careEvery(interval time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.wg.Go(func() { // without start's lock: this goroutine is already part of wg
		<-s.done
		cancel()
	})
	var cut, mark <-chan time.Time
	if interval > 0 {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		cut = tick.C
	}
	if s.shared {
		tick := time.NewTicker(formatInterval)
		defer tick.Stop()
		mark = tick.C
	}
	for {
		var err error
		select {
		case <-s.done:
			return
		case <-cut:
			err = s.tick(ctx)
		case <-mark:
			if err = s.lookAtFormat(ctx); !errors.Is(err, format.ErrNewer) {
				err = nil // the next look is soon; requests report an unreachable etcd
			}
		}
		if err != nil && !Ended(ctx, err) {
			s.log.Warn("care of etcd failed; it is tried again later", "error", err)
		}
	}
}
