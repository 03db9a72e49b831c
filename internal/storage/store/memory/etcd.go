// Package memory keeps keys with their history in memory, as a backend of package store for tests.
//
// An Etcd behaves like etcd: revisions, transactions, history from old revisions on, leases, compaction, errors. It has
// no files, no sockets and no database, and links nothing of etcd's server. TestLikeEtcd compares it with etcd. Several
// stores can share one, as several servers share a cluster.
//
// Main types: Etcd; history, the versions of one key.
//
// Methods are safe for concurrent use. mu guards all state; no lock is held while a watch sends.
package memory

import (
	"context"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/fault"
)

// Etcd holds the keys. A store that opens it writes alone. A store that opens Shared takes part with others.
type Etcd struct {
	// MaxRequestBytes is the maximum size of a write; 0 means 1.5 MiB, etcd's default.
	MaxRequestBytes int

	mu        sync.RWMutex
	revision  int64
	compacted int64 // the oldest readable revision
	keys      map[string]*history
	order     []*history       // of keys, sorted
	log       []logged         // the changes from compacted on
	changed   chan struct{}    // closed with the next change
	leases    map[int64]*lease // by ID
	lastLease int64            // the last ID
	open      int              // number of open backends
}

// logged is a change in the history.
type logged struct {
	revision int64
	event    *mvccpb.Event
}

// firstRevision is the revision of an empty etcd.
const firstRevision = 1

// New returns an empty etcd.
func New() *Etcd {
	return &Etcd{
		revision: firstRevision, keys: map[string]*history{}, changed: make(chan struct{}), leases: map[int64]*lease{},
	}
}

// Open implements store.Opener.
func (e *Etcd) Open(context.Context, store.Environment) (store.Backend, error) {
	return e.connect(false), nil
}

// Shared returns an opener for one of several stores on this etcd. They coordinate as stores on a cluster do.
func (e *Etcd) Shared() store.Opener { return shared{e} }

type shared struct{ etcd *Etcd }

func (s shared) Open(context.Context, store.Environment) (store.Backend, error) {
	return s.etcd.connect(true), nil
}

// backend is an Etcd as one store sees it.
type backend struct {
	*Etcd
	shared bool
	fault  *fault.Fault
}

var (
	_ store.Opener  = (*Etcd)(nil)
	_ store.Opener  = shared{}
	_ store.Backend = (*backend)(nil)
)

func (e *Etcd) connect(shared bool) *backend {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open++; e.open == 1 {
		e.startLeasesLocked()
	}
	return &backend{Etcd: e, shared: shared, fault: fault.New()}
}

// Close implements store.Backend. The keys stay: a later store finds them.
func (b *backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open--; b.open == 0 {
		b.stopLeasesLocked()
	}
	return b.Failure()
}

// Revision implements store.Backend.
func (e *Etcd) Revision(context.Context) (int64, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.revision, nil
}

// Shared implements store.Backend.
func (b *backend) Shared() bool { return b.shared }

// Check implements store.Backend.
func (b *backend) Check(context.Context) error { return b.Failure() }

// ClientURL implements store.Backend: there is no socket.
func (b *backend) ClientURL() string { return "" }

// Maintainer implements store.Backend: there is no database.
func (b *backend) Maintainer() store.Maintainer { return nil }

// Failed implements store.Backend.
func (b *backend) Failed() <-chan struct{} { return b.fault.Done() }

// Failure implements store.Backend.
func (b *backend) Failure() error { return b.fault.Err() }

// Fail implements store.Backend.
func (b *backend) Fail(reason error) { b.fault.Fail(reason) }
