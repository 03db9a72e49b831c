package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

// local is an etcd server with one member inside this process.
//
// Reads and watches access the server's key space directly, bypassing raft. That is linearizable only for this setup.
// The member is alone, so no other member can have committed anything. It applies an entry to the key space after the
// entry is in the fsynced log and before it acknowledges the write. And openEmbedded returns after the whole log has
// been applied. So every acknowledged write is in the key space. Measured: a read costs 2 µs instead of the 60 µs of
// raft's read index.
//
// etcd locks the key space while it writes its database to the disk, ten times a second. So a request for the revision
// only, which every read of a view makes, returns the highest revision visible to any client so far (saw), unless other
// programs write through ListenClientURL.
type local struct {
	etcd  *embed.Etcd
	lock  *fileutil.LockedFile
	fault *fault
	dir   string
	quota int64 // bytes

	alone bool         // only this Store writes
	seen  atomic.Int64 // the highest revision in any response, or in a batch of a watch
	past  past
}

// openEmbedded starts the server in a separate goroutine. If etcd gives up on damaged files (log Fatal or Panic, or a
// fault in mapped memory), only that goroutine ends, not the process.
func openEmbedded(ctx context.Context, c Embedded, log *slog.Logger) (backend, *clientv3.Client, error) {
	cfg, err := etcdConfig(c)
	if err != nil {
		return nil, nil, err
	}
	lock, err := lockDataDir(c.Dir)
	if err != nil {
		return nil, nil, err
	}
	smallSegments()
	fault := newFault()
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(etcdLogger(log, fault))

	type started struct {
		etcd *embed.Etcd
		err  error
	}
	result := make(chan started, 1) // the receiver may have given up
	go func() {
		debug.SetPanicOnFault(true)
		defer func() { fault.recovered(recover()) }()
		if err := checkFiles(c.Dir); err != nil {
			fault.fail(damageError{err})
			return
		}
		if c.FirstRevision > 0 {
			if err := beginAt(c.Dir, c.FirstRevision); err != nil {
				result <- started{nil, err}
				return
			}
		}
		e, err := embed.StartEtcd(cfg)
		if err == nil {
			err = becomeLeader(ctx, e.Server, fault)
		}
		if err != nil && e != nil {
			fault.stopping.Store(true)
			e.Close()
		}
		result <- started{e, err}
	}()
	var r started
	select {
	case r = <-result:
	case <-fault.c:
		r.err = fault.err()
	case <-ctx.Done():
		r.err = ctx.Err()
	}
	if r.err == nil {
		l := &local{etcd: r.etcd, lock: lock, fault: fault, dir: c.Dir, quota: cfg.QuotaBackendBytes,
			alone: c.ListenClientURL == "", past: past{most: c.History}}
		return l, l.client(), nil
	}
	lock.Close()
	if ctx.Err() != nil {
		return nil, nil, fmt.Errorf("store: start of the embedded etcd in %s was interrupted: %w", c.Dir, ctx.Err())
	}
	return nil, nil, startError(c, r.err)
}

// client returns the client for writes. From here on saw covers every revision visible to any client.
func (l *local) client() *clientv3.Client {
	rev := l.etcd.Server.KV().Rev()
	l.saw(rev)
	l.past.begin(rev)
	return v3client.New(l.etcd.Server)
}

// checkFiles finds damage that etcd would not survive or report.
func checkFiles(dir string) error {
	if err := checkDatabase(dir); err != nil {
		return err
	}
	return checkLog(dir)
}

// smallSegments makes etcd preallocate its log in two segments of 16 MB instead of 64 MB, the default, which is too
// much for each of many test servers and for a temporary directory in memory. The size is a package variable of etcd;
// it is set once, before the first server starts.
var smallSegments = sync.OnceFunc(func() { wal.SegmentSizeBytes = 16 << 20 })

// etcdConfig returns the settings of a small single-member server.
func etcdConfig(c Embedded) (*embed.Config, error) {
	if c.Dir == "" {
		return nil, errors.New("store: the embedded etcd has no data directory")
	}
	cfg := embed.NewConfig()
	cfg.Name = "bowsprit"
	cfg.Dir = c.Dir
	cfg.UnsafeNoFsync = c.NoSync
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)

	// No sockets. The advertised URLs stay: they are part of the membership that etcd writes down.
	cfg.ListenPeerUrls, cfg.ListenClientUrls = nil, nil
	cfg.EnableGRPCGateway = false
	if c.ListenClientURL != "" {
		if err := CheckListenURL(c.ListenClientURL); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		u, err := url.Parse(c.ListenClientURL)
		if err != nil {
			return nil, err
		}
		u.Path = "" // etcd allows no slash here
		cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*u}, []url.URL{*u}
	}

	// etcd's default, so that data stored here can move to another etcd.
	cfg.MaxRequestBytes = cmp.Or(c.MaxRequestBytes, embed.DefaultMaxRequestBytes)
	cfg.QuotaBackendBytes = cmp.Or(c.Quota, 8<<30)
	// raft keeps entries for followers, and there are none: the log's tail in memory is 100 to 200 entries. The log on
	// disk is cut often, which also bounds the replay after a restart.
	cfg.SnapshotCount = 2000
	cfg.SnapshotCatchUpEntries = 100
	cfg.MaxSnapFiles, cfg.MaxWalFiles = 2, 2
	cfg.PreVote = false
	cfg.WarningApplyDuration = time.Second
	cfg.WarningUnaryRequestDuration = time.Second
	return cfg, nil
}

func (l *local) read(ctx context.Context, start, end []byte, limit, rev int64) ([]*mvccpb.KeyValue, bool, int64,
	error) {
	ask := limit
	if limit > 0 {
		ask++ // one more shows whether more follow, without counting them all as etcd's Range request does
	}
	r, err := l.etcd.Server.KV().Range(ctx, start, end, mvcc.RangeOptions{Limit: ask, Rev: rev})
	if err != nil {
		return nil, false, 0, readError(err)
	}
	l.saw(r.Rev)
	if limit > 0 && int64(len(r.KVs)) > limit {
		return r.KVs[:limit], true, r.Rev, nil
	}
	return r.KVs, false, r.Rev, nil
}

func (l *local) revision(context.Context) (int64, error) {
	select {
	case <-l.fault.c:
		return 0, l.failure()
	default:
		if l.alone {
			return l.seen.Load(), nil
		}
		return l.etcd.Server.KV().Rev(), nil
	}
}

func (l *local) saw(rev int64) { raise(&l.seen, rev) }

// watch follows the whole key space, not only the prefix. So every revision arrives, and progress requests are
// unnecessary. Other keys exist only if another program writes through ListenClientURL.
func (l *local) watch(ctx context.Context, prefix string, from int64, out chan<- WatchBatch) error {
	stream := l.etcd.Server.KV().NewWatchStream()
	defer stream.Close()
	if _, err := stream.Watch(ctx, 0, []byte{0}, []byte{}, from); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	g := gather{prefix: prefix}
	for {
		in, send := stream.Chan(), out
		if g.full() {
			in = nil
		}
		if g.empty() {
			send = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case r := <-in:
			if r.CompactRevision != 0 {
				return ErrCompacted
			}
			for _, e := range r.Events {
				g.add(e)
			}
			l.saw(g.batch.Revision)
			if l.alone {
				l.past.note(g.batch.Revision)
			}
		case send <- g.batch:
			g.reset()
		}
	}
}

func (l *local) requestProgress(int64)   {}
func (l *local) failed() <-chan struct{} { return l.fault.c }

// failure explains why etcd gave up, and the remedy. The process ends with this error.
func (l *local) failure() error {
	err := l.fault.err()
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: the embedded etcd in %s %w: %w; nothing that was acknowledged is lost: "+
		"remove the cause, such as a full disk, and start again", l.dir, ErrGaveUp, err)
}

func (l *local) clientURL() string {
	if len(l.etcd.Clients) == 0 {
		return ""
	}
	return "http://" + l.etcd.Clients[0].Addr().String()
}

func (l *local) close() error {
	defer l.lock.Close()
	if err := l.failure(); err != nil {
		return err // some of etcd's goroutines have ended; stopping would wait for them forever
	}
	l.fault.stopping.Store(true)
	if l.alone {
		l.etcd.Close()
		return nil
	}
	// etcd waits two minutes for clients in a handshake before it closes its data.
	closed := make(chan struct{})
	go func() { defer close(closed); l.etcd.Close() }()
	late := time.NewTimer(clientsWait)
	defer late.Stop()
	select {
	case <-closed:
	case <-late.C:
		l.etcd.Server.Stop() // the rest of Close has nothing to do with the data
	}
	return nil
}

// clientsWait is the time for clients of ListenClientURL to go away when the store is closed.
const clientsWait = 5 * time.Second
