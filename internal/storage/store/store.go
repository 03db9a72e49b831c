// Package store is the log: keys, revisions and transactions of etcd.
//
// It is the end of a write's path and the source of all reads. A write is one compare-and-swap transaction. The store's
// single Watch delivers changes in revision order, and package watchcache builds the view from them, which serves
// reads.
//
// Main types: Store, opened by Open; Backend, the etcd behind it: package embedded runs one inside this process (no
// socket, no gRPC), package external connects to a cluster, package memory keeps the keys of a test in memory; Record,
// a key with its value and revisions; WatchBatch, a piece of the ordered stream.
//
// Invariants:
//   - Revisions are etcd's: one counter for the whole store, strictly increasing with each write.
//   - A successful write is as durable as the backend: on the disk of the embedded etcd (unless its NoSync is set), on
//     the disks of a majority of an external cluster.
//   - A write that returned an error other than ErrUncertain changed nothing. This package never repeats a write.
//   - Keys are relative to Config.Prefix and have no leading slash.
//   - Only this package and its backends use etcd's types.
//
// All methods of Store are safe for concurrent use.
package store

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Config configures a store.
type Config struct {
	// Etcd opens the backend. It is required: an embedded.Config, an external.Config or a *memory.Etcd.
	Etcd Opener
	// Prefix is the root of all keys, "/registry" if empty, like kube-apiserver's --etcd-prefix.
	Prefix string
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

// Store is an open etcd.
type Store struct {
	prefix  string // with slashes at both ends
	backend Backend
	shared  bool // see Shared
	log     *slog.Logger
	observe func(ctx context.Context, operation, key string, took time.Duration, err error) // may be nil

	written   atomic.Int64 // see Written
	horizon   atomic.Int64 // see Horizon
	leases    *leases
	compactor compactor // careEvery's goroutine only
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
	if c.Etcd == nil {
		return nil, errors.New("store: no etcd is configured; set Config.Etcd")
	}
	s := &Store{
		prefix: "/" + prefix + "/", log: c.Log, leases: newLeases(), background: background{done: make(chan struct{})},
		observe: c.Observe,
	}
	var err error
	if s.backend, err = c.Etcd.Open(ctx, Environment{Prefix: s.prefix, Log: c.Log, Tracing: c.Tracing}); err != nil {
		return nil, err
	}
	s.shared = s.backend.Shared()
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
		s.closeErr = s.backend.Close()
	})
	return s.closeErr
}

// Shared reports whether other processes may write to the same etcd.
func (s *Store) Shared() bool { return s.shared }

// ClientURL returns the URL at which the embedded etcd listens, with its actual port; "" if there is none.
func (s *Store) ClientURL() string { return s.backend.ClientURL() }

// Failed is closed when the store has failed for good, for example because the disk is full, its files are damaged, or
// a server with a newer format uses it (MarkFormat). Check then returns the reason. The process should end: all writes
// fail.
func (s *Store) Failed() <-chan struct{} { return s.backend.Failed() }

// Check reports whether the store can currently be read linearizably: whether there is a quorum and a leader.
func (s *Store) Check(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	return s.backend.Check(ctx)
}

// Size returns the size of etcd's database file in bytes, including pages freed by compaction: the size that counts
// against the quota. It is 0 for a backend without a database.
func (s *Store) Size(ctx context.Context) (int64, error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	if m := s.backend.Maintainer(); m != nil {
		return m.Size(ctx)
	}
	return 0, nil
}

// CheckRoom reports whether the store accepts new data: ErrNoSpace while its quota is used up. Deletions always work.
func (s *Store) CheckRoom(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if m := s.backend.Maintainer(); m != nil {
		return m.CheckRoom(ctx)
	}
	return nil
}

// Snapshot writes the whole of etcd, of every prefix, at one revision to w. The format is etcd's: the database file
// followed by its SHA-256, readable by etcdutl. Reads and writes continue meanwhile. It returns ErrNoDatabase for a
// backend without a database.
func (s *Store) Snapshot(ctx context.Context, w io.Writer) (written int64, err error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	if m := s.backend.Maintainer(); m != nil {
		return m.Snapshot(ctx, w)
	}
	return 0, ErrNoDatabase
}
