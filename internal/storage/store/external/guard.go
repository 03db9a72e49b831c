package external

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// A guard makes a transaction safe to send several times, to several members. Any member may be paused and apply it
// later. It is a key of this process with a value for each write:
//
//   - The transaction has the condition that the guard's mod revision is still the known one, and puts the write's mark
//     into the guard. Mod revisions only grow, so at most one attempt takes place, however late.
//   - An attempt that is refused reads the guard. If the mark is there, an earlier attempt took place, at the guard's
//     mod revision.
//   - A refusal is final once no attempt can take place any more. If others are unanswered, a put into the guard, under
//     the same condition, ends them first; its own refusal says that one of them took place.
//
// docs/design/guards.md has the reasons. A guard belongs to one write at a time; guards are kept for later writes.
type guard struct {
	key string
	rev int64 // its mod revision
}

// cluster is the etcd that guards are in.
type cluster interface {
	// once sends a transaction one time, hedged as often as it takes.
	once(ctx context.Context, t *pb.TxnRequest) (*pb.TxnResponse, error)
	hedged(ctx context.Context, t *pb.TxnRequest) (*pb.TxnResponse, error)
	grant(ctx context.Context, seconds int64) (lease int64, err error)
	revoke(ctx context.Context, lease int64) error
	// suspect reports that a member may not answer.
	suspect()
}

// guards are the guards of one process. The lease 0 means none.
type guards struct {
	etcd   cluster
	log    *slog.Logger
	prefix string
	marks  atomic.Int64
	off    atomic.Bool // etcd does not let this user write guards

	granting sync.Mutex // held while etcd grants the lease
	mu       struct {
		sync.Mutex
		free  []*guard
		made  int
		lease int64
		until time.Time // when the lease is no longer given out
	}
}

const (
	guardPrefix = "/bowsprit/writes/"
	// guardTTL is the time after which etcd deletes the guards of a process that is gone. It is far beyond the time
	// that a write may take.
	guardTTL = 24 * time.Hour
	// maxAttempts bounds the attempts of one write. They begin hedgeAfter after each other at first, so that one begins
	// soon after an election, and twice as late each time from the eighth on.
	maxAttempts = 12
	// attemptPause is the time before the second attempt if the first has failed. It doubles each time, up to three
	// seconds.
	attemptPause = 100 * time.Millisecond
)

// errGuardLost: the guard is gone, because its lease has ended or etcd was restored. Nothing was written, and nothing
// will be.
var errGuardLost = errors.New("etcd has lost the guard of a write")

func newGuards(etcd cluster, log *slog.Logger) *guards {
	return &guards{etcd: etcd, log: log, prefix: guardPrefix + uuid.NewString() + "/"}
}

// commit makes a transaction at most once, with as many attempts as it takes.
func (g *guards) commit(ctx context.Context, t *pb.TxnRequest) (*pb.TxnResponse, error) {
	if g.off.Load() {
		return g.etcd.once(ctx, t)
	}
	own, err := g.take(ctx)
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		if !g.off.Swap(true) {
			g.log.Warn("etcd's user may not write below "+guardPrefix+"; a write waits for the member that it was sent to",
				"error", err)
		}
		return g.etcd.once(ctx, t)
	case err != nil:
		return nil, err
	}
	lease, err := g.leased(ctx)
	if err != nil {
		g.put(own)
		return nil, err
	}
	mark := strconv.FormatInt(g.marks.Add(1), 36)
	w := &attempts{guards: g, own: own, mark: mark, looks: len(t.Failure)}
	w.t = &pb.TxnRequest{
		Compare: append(slices.Clip(t.Compare), own.unchanged()),
		Success: append(slices.Clip(t.Success),
			put(&pb.PutRequest{Key: []byte(own.key), Value: []byte(mark), Lease: lease})),
		Failure: append(slices.Clip(t.Failure), own.look()),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return w.run(ctx)
}

// unchanged is the condition that the guard is as this process knows it.
func (g *guard) unchanged() *pb.Compare {
	return &pb.Compare{
		Key: []byte(g.key), Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: g.rev},
	}
}

// look reads the guard.
func (g *guard) look() *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte(g.key)}}}
}

func put(r *pb.PutRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: r}}
}

// take returns a guard that no other write has.
func (g *guards) take(ctx context.Context) (*guard, error) {
	g.mu.Lock()
	if n := len(g.mu.free); n > 0 {
		own := g.mu.free[n-1]
		g.mu.free = g.mu.free[:n-1]
		g.mu.Unlock()
		return own, nil
	}
	g.mu.made++
	own := &guard{key: g.prefix + strconv.Itoa(g.mu.made)}
	g.mu.Unlock()
	lease, err := g.leased(ctx)
	if err != nil {
		return nil, err
	}
	// A late attempt must not overwrite a mark, so it finds the key.
	resp, err := g.etcd.hedged(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{own.unchanged()}, // it does not exist
		Success: []*pb.RequestOp{put(&pb.PutRequest{Key: []byte(own.key), Lease: lease})},
		Failure: []*pb.RequestOp{own.look()},
	})
	if err != nil {
		g.lost(err)
		return nil, err
	}
	if own.rev = resp.Header.Revision; !resp.Succeeded {
		kvs := resp.Responses[0].GetResponseRange().GetKvs()
		if len(kvs) == 0 {
			return nil, errGuardLost
		}
		own.rev = kvs[0].ModRevision
	}
	return own, nil
}

// put gives a guard back.
func (g *guards) put(own *guard) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.free = append(g.mu.free, own)
}

// lost forgets the guards and their lease if err says that etcd does not know them.
func (g *guards) lost(err error) {
	if !errors.Is(err, errGuardLost) && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.free, g.mu.lease = nil, 0
}

// leased returns the lease of guards.
func (g *guards) leased(ctx context.Context) (int64, error) {
	g.granting.Lock()
	defer g.granting.Unlock()
	g.mu.Lock()
	lease, until := g.mu.lease, g.mu.until
	g.mu.Unlock()
	if lease != 0 && time.Now().Before(until) {
		return lease, nil
	}
	lease, err := g.etcd.grant(ctx, int64(guardTTL/time.Second))
	if err != nil {
		return 0, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.lease, g.mu.until = lease, time.Now().Add(guardTTL/2)
	return lease, nil
}

// close has etcd delete the guards. An attempt that is under way does not take place then.
func (g *guards) close() {
	if g == nil {
		return
	}
	g.mu.Lock()
	lease := g.mu.lease
	g.mu.Unlock()
	if lease == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkWait)
	defer cancel()
	_ = g.etcd.revoke(ctx, lease) // else they end with the lease
}
