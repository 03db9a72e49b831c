// Package store is the log: keys, revisions and transactions in etcd. No other package imports etcd.
//
// It is the end of a write's path and the source of all reads. A write is one compare-and-swap transaction. The store's
// single Watch delivers changes in revision order, and package watchcache builds the view from them, which serves
// reads.
//
// Main types: Store, opened by Open either on an etcd server inside this process (no socket, no gRPC) or on an external
// cluster; Record, a key with its value and revisions; WatchBatch, a piece of the ordered stream.
//
// Invariants:
//   - Revisions are etcd's: one counter for the whole store, strictly increasing with each write.
//   - A successful write is on disk (of a majority, if external), unless Embedded.NoSync is set.
//   - A write that returned an error other than ErrUncertain changed nothing. This package never repeats a write.
//   - Keys are relative to Config.Prefix and have no leading slash; etcd's types do not leave the package.
//
// All methods of Store are safe for concurrent use.
package store

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.opentelemetry.io/otel/trace"
)

// Config selects and configures the etcd. Exactly one of Embedded and External is set.
type Config struct {
	// Prefix is the root of all keys, "/registry" if empty, like kube-apiserver's --etcd-prefix.
	Prefix   string
	Embedded *Embedded
	External *External
	// Log receives etcd's warnings; nil means slog.Default().
	Log *slog.Logger
	// CompactInterval is the interval of compactions, and the duration of the remaining history; 0 means 5 minutes, as
	// in kube-apiserver; negative means never.
	CompactInterval time.Duration
	// Observe is called after each read or write of keys with the operation (create, update, delete, get, list), its
	// key or prefix, and its result. May be nil.
	Observe func(ctx context.Context, operation, key string, took time.Duration, err error)
	// Tracing traces requests to an external etcd. Nil disables tracing.
	Tracing trace.TracerProvider
}

// Embedded runs a single-member etcd in this process.
type Embedded struct {
	// Dir is etcd's data directory; it is created if missing. Only one process at a time may use it.
	Dir string
	// NoSync trades durability for speed: nothing is fsynced. For tests.
	NoSync bool
	// ListenClientURL makes the server reachable for etcdctl, for example "http://127.0.0.1:2379"; port 0 selects a
	// free port. If empty, there is no socket.
	ListenClientURL string
	// Quota is the maximum size of the database in bytes; 0 means 8 GiB. At the quota etcd refuses new data, but not
	// deletions, until there is room again.
	Quota int64
	// MaxRequestBytes is the maximum size of a write; 0 means 1.5 MiB, etcd's default.
	MaxRequestBytes uint
	// History is the number of revisions of history to keep, if that many are younger than Config.CompactInterval. When
	// there are twice as many, the older half is compacted. 0 keeps all; so does ListenClientURL, because other
	// programs may need them.
	History int64
	// FirstRevision is the revision that a new data directory starts after; 0 means etcd's default. It serves data
	// recreated at each start: otherwise clients would see old revisions again with other contents.
	FirstRevision int64
}

// External names a running etcd cluster.
type External struct {
	Endpoints                 []string
	CAFile, CertFile, KeyFile string // PEM; CertFile and KeyFile go together
	// Dial opens connections to an address, "host:port"; nil dials directly.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// backend abstracts the differences between the embedded and the external etcd. Both write through clientv3.KV.
type backend interface {
	// read returns the keys of [start, end) at rev (0: now), at most limit (0: all); a nil end means start alone. The
	// result is linearizable; revision is the store's at the time of the read.
	read(ctx context.Context, start, end []byte, limit, rev int64) (kvs []*mvccpb.KeyValue, more bool, revision int64,
		err error)
	revision(ctx context.Context) (int64, error)
	// saw records a revision from the response to a write, even a refused one: later results of revision are not lower.
	saw(rev int64)
	// watch sends every change of the prefix from revision from on to out until ctx ends or the history is gone. It
	// returns after its goroutines have ended.
	watch(ctx context.Context, prefix string, from int64, out chan<- WatchBatch) error
	requestProgress(rev int64)
	// failed is closed when the backend has failed for good; failure returns the reason.
	failed() <-chan struct{}
	failure() error
	clientURL() string
	close() error
}

// Store is an open etcd.
type Store struct {
	prefix   string // with slashes at both ends
	embedded bool
	backend  backend
	client   *clientv3.Client
	guards   *guards // of writes; nil if there is one etcd
	log      *slog.Logger
	observe  func(ctx context.Context, operation, key string, took time.Duration, err error) // may be nil

	written   atomic.Int64 // see Written
	horizon   atomic.Int64 // see Horizon
	leases    *leases
	compactor compactor // careEvery's goroutine only
	room      room
	mark      mark
	background

	closing  sync.Once
	closeErr error
}

// background owns the goroutines of a store.
type background struct {
	done chan struct{} // closed when Close begins
	wg   sync.WaitGroup
	mu   sync.Mutex // orders start and stop
}

// start runs f in a goroutine that stop waits for; false if stop was called already.
func (b *background) start(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.done:
		return false
	default:
		b.wg.Go(f)
		return true
	}
}

func (b *background) stop() {
	b.mu.Lock()
	close(b.done)
	b.mu.Unlock()
	b.wg.Wait()
}

// Open starts or connects to etcd and returns when a write and a linearizable read would succeed.
//
// Errors are one line with the problem and the remedy.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	prefix := strings.Trim(c.Prefix, "/")
	if prefix == "" {
		prefix = "registry"
	}
	s := &Store{
		prefix: "/" + prefix + "/", embedded: c.Embedded != nil, log: c.Log, leases: newLeases(),
		room: room{wanted: make(chan struct{}, 1)}, background: background{done: make(chan struct{})},
		observe: c.Observe,
	}
	var err error
	switch {
	case c.Embedded != nil && c.External != nil:
		return nil, errors.New("store: embedded and external etcd are both configured; choose one")
	case c.Embedded != nil:
		s.backend, s.client, err = openEmbedded(ctx, *c.Embedded, c.Log)
	case c.External != nil:
		var r *remote
		if r, s.client, err = openExternal(ctx, *c.External, s.prefix, c.Tracing, c.Log); err == nil {
			s.backend, s.guards = r, r.guards
		}
	default:
		return nil, errors.New("store: neither an embedded nor an external etcd is configured")
	}
	if err != nil {
		return nil, err
	}
	if c.CompactInterval == 0 {
		c.CompactInterval = 5 * time.Minute
	}
	s.start(func() { s.careEvery(c.CompactInterval) })
	return s, nil
}

// Path returns the full key in etcd, with the prefix.
func (s *Store) Path(key string) string { return s.prefix + key }

// Close ends all watches, waits for them, and stops or disconnects etcd. It may be called more than once.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.stop()
		s.guards.close()
		s.client.Close()
		s.closeErr = s.backend.close()
	})
	return s.closeErr
}

// Shared reports whether other processes may write to the same etcd.
func (s *Store) Shared() bool { return !s.embedded }

// ClientURL returns the URL at which the embedded etcd listens, with its actual port; "" if there is none.
func (s *Store) ClientURL() string { return s.backend.clientURL() }

// Failed is closed when the store has failed for good, for example because the disk is full, its files are damaged, or
// a server with a newer format uses it (MarkFormat). Check then returns the reason. The process should end: all writes
// fail.
func (s *Store) Failed() <-chan struct{} { return s.backend.failed() }

// Check reports whether the store can currently be read linearizably: whether there is a quorum and a leader.
func (s *Store) Check(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if !s.embedded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, checkTimeout)
		defer cancel()
	}
	// Use the client even when embedded: unlike backend.read it goes through raft, so it fails when raft is stuck.
	_, err := s.client.Get(ctx, s.prefix, clientv3.WithCountOnly())
	return readError(err)
}

// requestTimeout bounds a request to an external etcd, so that a lost request returns an error. The embedded etcd
// bounds requests itself.
const requestTimeout = 10 * time.Second

// checkTimeout bounds Check, as kube-apiserver bounds its check of etcd: probes are less patient than writers.
const checkTimeout = 2 * time.Second

func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.embedded {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, requestTimeout)
}
