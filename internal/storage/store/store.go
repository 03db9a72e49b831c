// Package store is the log: keys, revisions and transactions in etcd. No other package imports etcd.
//
// It stands at the end of a write's path and at the start of everything that is read: a write is one compare-and-swap
// transaction here, and what the store's single Watch delivers, in revision order, is what package watchcache turns
// into the view that answers reads.
//
// Main types: Store, opened by Open either on an etcd server inside this process (no socket, no gRPC) or on an external
// cluster; Record, a key with its value and revisions; WatchBatch, a piece of the ordered stream.
//
// Invariants:
//   - Revisions are etcd's: one counter for the whole store, strictly increasing with each write.
//   - A write that returned nil is on disk (of a majority, when external), unless Embedded.NoSync says otherwise.
//   - A write that returned an error other than ErrUncertain changed nothing. It is never repeated by this package.
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

// Config says which etcd to use and how. Exactly one of Embedded and External is set.
type Config struct {
	// Prefix is the root of all keys, "/registry" if empty, as kube-apiserver's --etcd-prefix.
	Prefix   string
	Embedded *Embedded
	External *External
	// Log receives what etcd warns about; nil means slog.Default().
	Log *slog.Logger
	// CompactInterval is how often history is compacted, and how much of it is kept; 0 means 5 minutes, as
	// kube-apiserver; negative means never.
	CompactInterval time.Duration
	// Observe is called after each read or write of keys with what was done (create, update, delete, get, list), to
	// which key or to those that begin with it, and what came of it. Nil is not called.
	Observe func(ctx context.Context, operation, key string, took time.Duration, err error)
	// Tracing traces requests to an external etcd. Nil traces none.
	Tracing trace.TracerProvider
}

// Embedded runs a single-member etcd in this process.
type Embedded struct {
	// Dir is etcd's data directory; it is made if missing. One process at a time may use it.
	Dir string
	// NoSync gives up durability for speed: nothing is fsynced. For tests.
	NoSync bool
	// ListenClientURL makes the server reachable for etcdctl, for example "http://127.0.0.1:2379"; port 0 picks a free
	// one. Empty means no socket at all.
	ListenClientURL string
	// Quota is how large the database may grow, in bytes; 0 means 8 GiB. At the quota etcd refuses new data, but no
	// deletions, until there is room again.
	Quota int64
	// MaxRequestBytes is how large a write may be; 0 means 1.5 MiB, etcd's own default.
	MaxRequestBytes uint
	// History is how many revisions of history are kept, if that many are younger than Config.CompactInterval: when
	// there are twice as many, the older half goes. 0 keeps all; so does ListenClientURL, since others may want them.
	History int64
	// FirstRevision is the revision that a new data directory begins after; 0 is etcd's own. It is for data that is
	// made anew at each start: whose clients would otherwise meet their revisions again with another content.
	FirstRevision int64
}

// External names a running etcd cluster.
type External struct {
	Endpoints                 []string
	CAFile, CertFile, KeyFile string // PEM; CertFile and KeyFile go together
	// Dial opens connections to an address, "host:port"; nil dials directly.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// backend is what differs between the embedded and the external etcd. Writes do not: both go through clientv3.KV.
type backend interface {
	// read returns the keys of [start, end) at rev (0: now), at most limit (0: all); end nil means start alone.
	// The answer is linearizable; revision is the store's at the time of the read.
	read(ctx context.Context, start, end []byte, limit, rev int64) (kvs []*mvccpb.KeyValue, more bool, revision int64,
		err error)
	revision(ctx context.Context) (int64, error)
	// saw notes a revision that was in the answer to a write, also to one that was refused: revision is not below it.
	saw(rev int64)
	// watch sends every change of the prefix from revision from on to out until ctx ends or the history is gone.
	// It does not return before its goroutines have ended.
	watch(ctx context.Context, prefix string, from int64, out chan<- WatchBatch) error
	requestProgress(rev int64)
	// failed is closed when the backend broke for good; failure says why.
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
// Errors are one line that says what is wrong and what to do.
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
		s.backend, s.client, err = openExternal(ctx, *c.External, s.prefix, c.Tracing, c.Log)
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

// Path returns a key as etcd knows it, below the prefix.
func (s *Store) Path(key string) string { return s.prefix + key }

// Close ends all watches, waits for them, and stops or leaves etcd. It may be called more than once.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.stop()
		s.client.Close()
		s.closeErr = s.backend.close()
	})
	return s.closeErr
}

// Shared reports whether other processes may write to the same etcd.
func (s *Store) Shared() bool { return !s.embedded }

// ClientURL returns the URL at which the embedded etcd listens, with its real port; "" if it does not, or is external.
func (s *Store) ClientURL() string { return s.backend.clientURL() }

// Failed is closed when the store broke for good, for example because the disk is full, its files are damaged, or a
// server of a newer format uses it (MarkFormat); Check then says why. The process should end: nothing can be written
// any more.
func (s *Store) Failed() <-chan struct{} { return s.backend.failed() }

// Check reports whether the store can be read right now, linearizably: whether there is a quorum and a leader.
func (s *Store) Check(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if !s.embedded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, checkTimeout)
		defer cancel()
	}
	// Through the client even when embedded: unlike backend.read it asks raft, so it fails when raft is stuck.
	_, err := s.client.Get(ctx, s.prefix, clientv3.WithCountOnly())
	return readError(err)
}

// requestTimeout bounds a request to an external etcd, so that a lost one gives an error and not silence. The embedded
// one bounds requests itself.
const requestTimeout = 10 * time.Second

// checkTimeout bounds Check, as kube-apiserver bounds its check of etcd: who probes has less patience than who writes.
const checkTimeout = 2 * time.Second

func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.embedded {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, requestTimeout)
}
