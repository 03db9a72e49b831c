package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// leases hands out etcd leases for keys that expire. A lease of its own for each key would cost etcd more than the key
// (events come by the thousand), so keys written within a minute with the same TTL share one: it is made to last that
// much longer than asked for, as kube-apiserver's lease manager does.
type leases struct {
	now func() time.Time // the clock that decides what is shared; etcd's own decides what expires
	mu  struct {
		sync.Mutex
		byTTL map[time.Duration]*lease // at most leaseKinds
	}
}

type lease struct {
	granting sync.Mutex // held while etcd is asked, so that those who need the lease meanwhile wait for it

	// Guarded by granting:
	id    clientv3.LeaseID
	until time.Time // when it may no longer be given out
	keys  int
}

const (
	leaseShare = 20          // a lease lasts longer by this part of its TTL,
	leaseMost  = time.Minute // but by no more than this, and is given out for that long
	leaseKeys  = 1000        // to so many keys: etcd deletes all of a lease's keys in one transaction
	leaseKinds = 64          // different TTLs that are remembered
)

func newLeases() *leases {
	l := &leases{now: time.Now}
	l.mu.byTTL = map[time.Duration]*lease{}
	return l
}

// lease returns a lease that lasts at least ttl from now.
func (s *Store) lease(ctx context.Context, ttl time.Duration) (clientv3.LeaseID, error) {
	ttl = max(ttl.Round(time.Second), time.Second)
	l := s.leases.of(ttl)
	l.granting.Lock()
	defer l.granting.Unlock()
	now := s.leases.now()
	if l.id != 0 && l.keys < leaseKeys && now.Before(l.until) {
		l.keys++
		return l.id, nil
	}
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	longer := min(ttl/leaseShare, leaseMost).Truncate(time.Second)
	granted, err := s.client.Grant(ctx, int64((ttl+longer)/time.Second))
	if errors.Is(err, rpctypes.ErrNoSpace) {
		s.room.refused()
		return 0, ErrNoSpace
	}
	if err != nil {
		return 0, readError(err) // an unused lease does no harm
	}
	l.id, l.until, l.keys = granted.ID, now.Add(longer), 1
	return l.id, nil
}

func (ls *leases) of(ttl time.Duration) *lease {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.mu.byTTL[ttl]
	if l == nil {
		if len(ls.mu.byTTL) >= leaseKinds {
			clear(ls.mu.byTTL)
		}
		l = &lease{}
		ls.mu.byTTL[ttl] = l
	}
	return l
}

// forget makes later callers get leases that are not known to be lost.
func (ls *leases) forget() {
	ls.mu.Lock()
	clear(ls.mu.byTTL)
	ls.mu.Unlock()
}
