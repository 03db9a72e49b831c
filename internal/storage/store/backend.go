package store

import (
	"context"
	"io"
	"log/slog"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.opentelemetry.io/otel/trace"
)

// Opener opens a backend.
type Opener interface {
	// Open starts or connects to etcd and returns when a write and a linearizable read would succeed.
	Open(ctx context.Context, e Environment) (Backend, error)
}

// Environment is the part of a store's Config that backends use.
type Environment struct {
	Prefix  string // of the store's keys, with slashes at both ends
	Log     *slog.Logger
	Tracing trace.TracerProvider // may be nil
}

// Backend is an etcd: keys with their history in the order of revisions, in one of three implementations. Keys are
// whole, with the store's prefix.
//
// Its errors are ErrCompacted, ErrFuture, ErrTooLarge, ErrNoSpace, ErrLeaseLost, ErrUncertain, or the context's error.
// ReadError and WriteError translate the errors of etcd's client. A backend bounds its requests in time, so that each
// call ends. Methods are safe for concurrent use. The Store calls Close once, and nothing after it.
type Backend interface {
	// Range returns keys with their values. The result is linearizable.
	Range(ctx context.Context, s Span) (Found, error)
	// Commit makes a transaction at most once: its Success operations if all comparisons hold, else its Failure
	// operations. After an error other than ErrUncertain and ErrNoSpace it has not taken place. After ErrNoSpace the
	// keys show whether it has. t belongs to the backend until Commit returns.
	Commit(ctx context.Context, t *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error)
	// Grant returns a new lease of so many seconds. Its keys expire together.
	Grant(ctx context.Context, seconds int64) (lease int64, err error)
	// Compact forgets the history before rev; ErrCompacted means that it is forgotten already.
	Compact(ctx context.Context, rev int64) error
	// Revision returns a revision that is not below any response or batch that began to arrive before the call, in any
	// process.
	Revision(ctx context.Context) (int64, error)
	// Watch sends every change of the prefix from revision from on to out until ctx ends or the history is gone. It
	// returns after its goroutines have ended. Gather builds its batches.
	Watch(ctx context.Context, prefix string, from int64, out chan<- WatchBatch) error
	// RequestProgress makes running watches send their revision when they have passed rev. It does not block.
	RequestProgress(rev int64)
	// Check reports whether a linearizable read would succeed.
	Check(ctx context.Context) error
	// Shared reports whether other processes may write to the same etcd.
	Shared() bool
	// ClientURL returns the URL at which the etcd of this process listens; "" if there is none.
	ClientURL() string
	// Failed is closed when the backend has failed for good. Failure returns the reason, nil before that. Fail makes it
	// fail.
	Failed() <-chan struct{}
	Failure() error
	Fail(reason error)
	// Maintainer returns the care of the database, nil if there is no database.
	Maintainer() Maintainer
	// Close ends the backend and returns its failure.
	Close() error
}

// Maintainer is the care of etcd's database.
type Maintainer interface {
	// Size returns the size of the database in bytes, as it counts against the quota.
	Size(ctx context.Context) (int64, error)
	// CheckRoom returns ErrNoSpace while the database is at its quota.
	CheckRoom(ctx context.Context) error
	// Snapshot writes the database with its checksum.
	Snapshot(ctx context.Context, w io.Writer) (written int64, err error)
}

// Span selects keys.
type Span struct {
	Start []byte
	End   []byte // exclusive; nil means the key Start alone
	Limit int64  // the largest number of keys; 0 means all
	// Revision to read at; 0 means now.
	Revision int64
}

// Found is the result of a Range.
type Found struct {
	Keys     []*mvccpb.KeyValue
	More     bool  // more than Span.Limit keys exist
	Revision int64 // of the store, at the time of the read
}
