package memory

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// minTTL is the shortest lease that etcd grants with its default election timeout.
const minTTL = 2 * time.Second

// lease deletes its keys when it ends.
type lease struct {
	ttl   time.Duration
	keys  map[string]bool
	timer *time.Timer // nil while no store is open
}

// Grant implements store.Backend.
func (e *Etcd) Grant(ctx context.Context, seconds int64) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lastLease++
	e.leases[e.lastLease] = &lease{ttl: max(time.Duration(seconds)*time.Second, minTTL), keys: map[string]bool{}}
	e.armLocked(e.lastLease)
	return e.lastLease, nil
}

// KeepAlive makes a lease last its whole time from now on, and returns that time.
func (e *Etcd) KeepAlive(id int64) (time.Duration, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.leases[id]
	if l == nil {
		return 0, store.ReadError(rpctypes.ErrLeaseNotFound)
	}
	e.armLocked(id)
	return l.ttl, nil
}

// Revoke ends a lease, as time does.
func (e *Etcd) Revoke(id int64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leases[id] == nil {
		return store.ReadError(rpctypes.ErrLeaseNotFound)
	}
	e.endLeaseLocked(id)
	return nil
}

// armLocked sets the timer of a lease.
func (e *Etcd) armLocked(id int64) {
	l := e.leases[id]
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.timer = nil; e.open == 0 {
		return
	}
	var own *time.Timer
	own = time.AfterFunc(l.ttl, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.leases[id] == l && l.timer == own { // a timer that was stopped may run already
			e.endLeaseLocked(id)
		}
	})
	l.timer = own
}

// endLeaseLocked deletes a lease and its keys, in one revision.
func (e *Etcd) endLeaseLocked(id int64) {
	l := e.leases[id]
	if l.timer != nil {
		l.timer.Stop()
	}
	x := &transaction{Etcd: e}
	for _, key := range slices.Sorted(maps.Keys(l.keys)) {
		e.putLocked(&mvccpb.KeyValue{Key: []byte(key), ModRevision: x.next()})
		x.changes++
	}
	delete(e.leases, id)
	x.endLocked()
}

// leaseLocked moves a key from the lease of its old version to the lease of its new one.
func (e *Etcd) leaseLocked(old, now *mvccpb.KeyValue) {
	if l := e.leases[old.GetLease()]; l != nil {
		delete(l.keys, string(old.Key))
	}
	if l := e.leases[now.Lease]; l != nil {
		l.keys[string(now.Key)] = true
	}
}

// startLeasesLocked has the leases last their whole time from now on, as etcd does when it starts.
func (e *Etcd) startLeasesLocked() {
	for id := range e.leases {
		e.armLocked(id)
	}
}

// stopLeasesLocked stops time for leases.
func (e *Etcd) stopLeasesLocked() {
	for _, l := range e.leases {
		if l.timer != nil {
			l.timer.Stop()
			l.timer = nil
		}
	}
}
