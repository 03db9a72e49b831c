package embedded

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

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/fault"
)

var (
	_ store.Opener     = Config{}
	_ store.Backend    = (*local)(nil)
	_ store.Maintainer = (*local)(nil)
)

// local is an etcd server with one member inside this process.
//
// Reads and watches access the server's key space directly, bypassing raft. That is linearizable only for this setup.
// The member is alone, so no other member can have committed anything. It applies an entry to the key space after the
// entry is in the fsynced log and before it acknowledges the write. And Config.Open returns after the whole log has
// been applied. So every acknowledged write is in the key space. Measured: a read costs 2 µs instead of the 60 µs of
// raft's read index.
//
// etcd locks the key space while it writes its database to the disk, ten times a second. So a request for the revision
// only, which every read of a view makes, returns the highest revision visible to any client so far (saw), unless other
// programs write through ListenClientURL.
type local struct {
	etcd   *embed.Etcd
	client *clientv3.Client // calls etcd's functions directly
	kv     etcdserverpb.KVServer
	lock   *fileutil.LockedFile
	fault  *fault.Fault
	log    *slog.Logger
	dir    string
	quota  int64 // bytes

	alone bool         // only this Store writes
	seen  atomic.Int64 // the highest revision in any response, or in a batch of a watch
	past  past
	room  room

	stop context.CancelFunc // of care
	wg   sync.WaitGroup     // care's
}

// Open implements store.Opener. It starts the server in a separate goroutine. If etcd gives up on damaged files (log
// Fatal or Panic, or a fault in mapped memory), only that goroutine ends, not the process.
func (c Config) Open(ctx context.Context, e store.Environment) (store.Backend, error) {
	cfg, err := etcdConfig(c)
	if err != nil {
		return nil, err
	}
	lock, err := lockDataDir(c.Dir)
	if err != nil {
		return nil, err
	}
	smallSegments()
	failure := fault.New()
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(fault.Logger(e.Log, failure))
	server, err := start(ctx, c, cfg, failure)
	if err == nil {
		l := &local{
			etcd: server, lock: lock, fault: failure, log: e.Log, dir: c.Dir, quota: cfg.QuotaBackendBytes,
			alone: c.ListenClientURL == "", past: past{most: c.History}, room: room{wanted: make(chan struct{}, 1)},
		}
		l.begin()
		return l, nil
	}
	lock.Close()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("store: start of the embedded etcd in %s was interrupted: %w", c.Dir, ctx.Err())
	}
	return nil, startError(c, err)
}

// start starts the server, and returns when it leads.
func start(ctx context.Context, c Config, cfg *embed.Config, failure *fault.Fault) (*embed.Etcd, error) {
	type started struct {
		etcd *embed.Etcd
		err  error
	}
	result := make(chan started, 1) // the receiver may have given up
	go func() {
		debug.SetPanicOnFault(true)
		defer func() { failure.Recovered(recover()) }()
		if err := checkFiles(c.Dir); err != nil {
			failure.Fail(damageError{err})
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
			err = becomeLeader(ctx, e.Server, failure)
		}
		if err != nil && e != nil {
			failure.Stop()
			e.Close()
		}
		result <- started{e, err}
	}()
	select {
	case r := <-result:
		return r.etcd, r.err
	case <-failure.Done():
		return nil, failure.Err()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// begin makes the started server usable. From here on saw covers every revision visible to any client.
func (l *local) begin() {
	rev := l.etcd.Server.KV().Rev()
	l.saw(rev)
	l.past.begin(rev)
	l.client, l.kv = v3client.New(l.etcd.Server), v3rpc.NewQuotaKVServer(l.etcd.Server)
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	l.wg.Go(func() { l.care(ctx) })
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
func etcdConfig(c Config) (*embed.Config, error) {
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
		if err := store.CheckListenURL(c.ListenClientURL); err != nil {
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

// Check implements store.Backend. Unlike Range it reads through raft, so it fails when raft is stuck.
func (l *local) Check(ctx context.Context) error {
	_, err := l.client.Get(ctx, "/", clientv3.WithCountOnly())
	return store.ReadError(err)
}

// Revision implements store.Backend.
func (l *local) Revision(context.Context) (int64, error) {
	select {
	case <-l.fault.Done():
		return 0, l.Failure()
	default:
		if l.alone {
			return l.seen.Load(), nil
		}
		return l.etcd.Server.KV().Rev(), nil
	}
}

// saw records a revision that a client can see: later results of Revision are not lower.
func (l *local) saw(rev int64) { store.Raise(&l.seen, rev) }

// Watch implements store.Backend. It follows the whole key space, not only the prefix. So every revision arrives, and
// progress requests are unnecessary. Other keys exist only if another program writes through ListenClientURL.
func (l *local) Watch(ctx context.Context, prefix string, from int64, out chan<- store.WatchBatch) error {
	stream := l.etcd.Server.KV().NewWatchStream()
	defer stream.Close()
	if _, err := stream.Watch(ctx, 0, []byte{0}, []byte{}, from); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	g := store.Gather{Prefix: prefix}
	for {
		in, send := stream.Chan(), out
		if g.Full() {
			in = nil
		}
		if g.Empty() {
			send = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case r := <-in:
			if r.CompactRevision != 0 {
				return store.ErrCompacted
			}
			for _, e := range r.Events {
				g.Add(e)
			}
			rev := g.Batch().Revision
			l.saw(rev)
			if l.alone {
				l.past.note(rev)
			}
		case send <- g.Batch():
			g.Reset()
		}
	}
}

// RequestProgress implements store.Backend: a watch receives every revision anyway.
func (l *local) RequestProgress(int64) {}

// Shared implements store.Backend. Other programs that write through ListenClientURL do so on their own account.
func (l *local) Shared() bool { return false }

// Maintainer implements store.Backend.
func (l *local) Maintainer() store.Maintainer { return l }

// Failed implements store.Backend.
func (l *local) Failed() <-chan struct{} { return l.fault.Done() }

// Fail implements store.Backend.
func (l *local) Fail(reason error) { l.fault.Fail(reason) }

// Failure implements store.Backend: it explains why etcd gave up, and the remedy. The process ends with this error.
func (l *local) Failure() error {
	err := l.fault.Err()
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: the embedded etcd in %s %w: %w; nothing that was acknowledged is lost: "+
		"remove the cause, such as a full disk, and start again", l.dir, store.ErrGaveUp, err)
}

// ClientURL implements store.Backend.
func (l *local) ClientURL() string {
	if len(l.etcd.Clients) == 0 {
		return ""
	}
	return "http://" + l.etcd.Clients[0].Addr().String()
}

// Close implements store.Backend.
func (l *local) Close() error {
	l.stop()
	l.wg.Wait()
	l.client.Close()
	defer l.lock.Close()
	if err := l.Failure(); err != nil {
		return err // some of etcd's goroutines have ended; stopping would wait for them forever
	}
	l.fault.Stop()
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
