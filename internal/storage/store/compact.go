package store

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/bowsprit/bowsprit/internal/storage/format"
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

// Horizon returns the revision before which nothing is to be read any more, between one and two intervals of compaction
// old; 0 before the second tick. What is in memory may reach further back, but continue tokens must come to an end:
// clients of Kubernetes rely on being told.
func (s *Store) Horizon() int64 { return s.horizon.Load() }

// compactor remembers where history may be cut next.
type compactor struct {
	next int64 // the revision at the last tick; 0 before the first
	// version of compactKey at the last tick: who finds it unchanged at the next is the one who cuts.
	version int64
}

// compactKey is where the API servers on one etcd agree on who compacts, and to what: kube-apiserver's key and its
// meaning, so that Kubernetes and we may use one etcd and cut its history once.
const compactKey = "compact_rev_key"

// tick compacts to the revision of the tick before: between one and two intervals of history are always there, for
// pages of a list and for watches that have lost their connection.
func (s *Store) tick(ctx context.Context) error {
	if s.embedded {
		return s.compactAlone(ctx)
	}
	return s.compactTogether(ctx)
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

// compactTogether is a round of kube-apiserver's protocol. All replicas try to write compactKey in the version that
// they remember; one succeeds, and cuts where the history stood at its last round; the others learn the new version.
func (s *Store) compactTogether(ctx context.Context) error {
	c := &s.compactor
	bound, cancel := s.bounded(ctx)
	defer cancel()
	resp, err := s.client.Txn(bound).
		If(clientv3.Compare(clientv3.Version(compactKey), "=", c.version)).
		Then(clientv3.OpPut(compactKey, strconv.FormatInt(c.next, 10))).
		Else(clientv3.OpGet(compactKey)).
		Commit()
	if err != nil {
		return readError(err)
	}
	cut := c.next
	c.next = resp.Header.Revision
	s.horizon.Store(cut) // whichever replica cuts
	if !resp.Succeeded {
		if kvs := resp.Responses[0].GetResponseRange().GetKvs(); len(kvs) > 0 {
			c.version = kvs[0].Version
		} else {
			c.version = 0 // the key was removed
		}
		return nil
	}
	c.version++
	if cut == 0 { // the first round only begins to count
		return nil
	}
	return s.Compact(ctx, cut)
}

// careEvery looks after etcd until the store is closed: history is cut at each interval, and the embedded database is
// kept small and writable.
func (s *Store) careEvery(interval time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.wg.Go(func() { // start's lock is not held here: this goroutine is one of wg already
		<-s.done
		cancel()
	})
	var cut, look, mark <-chan time.Time
	if interval > 0 {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		cut = tick.C
	}
	if s.embedded {
		tick := time.NewTicker(roomInterval)
		defer tick.Stop()
		look = tick.C
	} else {
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
		case <-look:
			err = s.makeRoom(ctx)
		case <-mark:
			if err = s.lookAtFormat(ctx); !errors.Is(err, format.ErrNewer) {
				err = nil // it looks again soon; that etcd cannot be reached, requests say
			}
		case <-s.room.wanted:
			err = s.makeRoom(ctx)
		case <-s.tooMuch():
			err = s.forgetPast(ctx)
		}
		if err != nil && !ended(ctx, err) {
			s.log.Warn("care of etcd failed; it is tried again later", "error", err)
		}
	}
}
