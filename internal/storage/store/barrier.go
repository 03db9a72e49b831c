package store

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Barrier orders a write before or after all writes of a set, on whichever replica: a definition before or after the
// writes of its objects.
//
// Each write of the set is behind the barrier (Options.Behind). A writer that must see all of them calls Store.Hold.
// Later writes of the set then fail with ErrHeld, and all earlier ones have a smaller revision than the hold. The
// writer reads them, and passes the hold with its own write (Options.Passes), or ends it (Store.Release). After a
// passed hold, writes of the set fail until their writer has seen the write that passed. A hold ends by itself after
// HoldTTL, and a write that passes it fails then.
type Barrier struct {
	Name string // "" means none
	// Seen is the revision that the writer has seen, and for Options.Passes the revision of the hold.
	Seen int64
}

// HoldTTL is the lifetime of a hold: a process that ends without Release delays others for no longer.
const HoldTTL = 10 * time.Second

// Hold closes the barrier of a name and returns the revision of the hold. It replaces another hold of the name, which
// then cannot be passed.
func (s *Store) Hold(ctx context.Context, name string) (revision int64, err error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	id, err := s.lease(ctx, HoldTTL)
	if err != nil {
		return 0, err
	}
	resp, err := s.backend.Commit(ctx, &etcdserverpb.TxnRequest{
		Success: []*etcdserverpb.RequestOp{put(barrierPrefix+name, []byte("hold"), id)},
	})
	if errors.Is(err, ErrLeaseLost) {
		s.leases.forget()
	}
	if err != nil {
		return 0, wrap("hold", name, err)
	}
	s.wrote(resp.Header.Revision)
	return resp.Header.Revision, nil
}

// Release opens the barrier if the hold of that revision still closes it.
func (s *Store) Release(ctx context.Context, hold Barrier) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	key := barrierPrefix + hold.Name
	_, err := s.backend.Commit(ctx, &etcdserverpb.TxnRequest{
		Compare: []*etcdserverpb.Compare{modified(key, etcdserverpb.Compare_EQUAL, hold.Seen)},
		Success: []*etcdserverpb.RequestOp{remove(key)},
	})
	return wrap("release", hold.Name, err)
}

// Held reports whether a hold closes the barrier of a name. A barrier that a write passed is not held.
func (s *Store) Held(ctx context.Context, name string) (bool, error) {
	if err := s.usable(ctx); err != nil {
		return false, err
	}
	got, err := s.backend.Range(ctx, Span{Start: []byte(barrierPrefix + name)})
	if err != nil {
		return false, wrap("read the barrier of", name, err)
	}
	return len(got.Keys) > 0 && len(got.Keys[0].Value) > 0, nil
}
