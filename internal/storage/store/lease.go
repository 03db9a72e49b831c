package store

import (
	"context"
	"sync"
	"time"
)

// leases hands out etcd leases for keys that expire. A separate lease for each key would cost etcd more than the key
// (events arrive by the thousand), so keys with the same TTL that are written within a minute share one. Its TTL is
// extended by that time, as in kube-apiserver's lease manager.
type leases struct {
	now func() time.Time // the clock for sharing; etcd's own clock decides about expiry
	mu  struct {
		sync.Mutex
		byTTL map[time.Duration]*lease // at most leaseKinds
	}
}

type lease struct {
	granting sync.Mutex // held while etcd is asked; other callers wait for the lease

	// Guarded by granting:
	id    int64     // 0 before the first
	until time.Time // end of its use for new keys
	keys  int
}

const (
	leaseShare = 20          // a lease lasts longer by this fraction of its TTL,
	leaseMost  = time.Minute // but at most by this time, during which it is shared
	leaseKeys  = 1000        // by at most so many keys: etcd deletes all keys of a lease in one transaction
	leaseKinds = 64          // maximum number of TTLs in memory
)

func newLeases() *leases {
	l := &leases{now: time.Now}
	l.mu.byTTL = map[time.Duration]*lease{}
	return l
}

// lease returns a lease that lasts at least ttl from now.
func (s *Store) lease(ctx context.Context, ttl time.Duration) (int64, error) {
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
	longer := min(ttl/leaseShare, leaseMost).Truncate(time.Second)
	id, err := s.backend.Grant(ctx, int64((ttl+longer)/time.Second))
	if err != nil {
		return 0, err // an unused lease is harmless
	}
	l.id, l.until, l.keys = id, now.Add(longer), 1
	return id, nil
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

// forget drops all leases, so that later callers get new ones.
func (ls *leases) forget() {
	ls.mu.Lock()
	clear(ls.mu.byTTL)
	ls.mu.Unlock()
}
