package store

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// transaction is one write: its effects take place if all conditions hold, else it looks.
type transaction struct {
	conditions     []clientv3.Cmp
	effects, looks []clientv3.Op
}

// outcome is the result of a transaction.
type outcome struct {
	succeeded bool
	revision  int64 // of the effects, if it succeeded
	seen      int64 // the store's revision in the answer
	looks     []*etcdserverpb.ResponseOp
}

// once sends a transaction one time.
func once(ctx context.Context, client *clientv3.Client, t transaction) (outcome, error) {
	resp, err := client.Txn(ctx).If(t.conditions...).Then(t.effects...).Else(t.looks...).Commit()
	if err != nil {
		return outcome{}, err
	}
	return outcome{
		succeeded: resp.Succeeded, revision: resp.Header.Revision, seen: resp.Header.Revision, looks: resp.Responses,
	}, nil
}

// A guard makes a transaction safe to send several times, to several members, of which any may be paused and apply it
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

// guards are those of one process. The zero lease is none.
type guards struct {
	client  *clientv3.Client
	suspect func() // members that may not answer
	log     *slog.Logger
	prefix  string
	marks   atomic.Int64
	off     atomic.Bool // etcd does not let this user write guards

	granting sync.Mutex // held while etcd grants the lease
	mu       struct {
		sync.Mutex
		free  []*guard
		made  int
		lease clientv3.LeaseID
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

func newGuards(client *clientv3.Client, suspect func(), log *slog.Logger) *guards {
	return &guards{client: client, suspect: suspect, log: log, prefix: guardPrefix + uuid.NewString() + "/"}
}

// transact makes a transaction at most once, with as many attempts as it takes.
func (g *guards) transact(ctx context.Context, t transaction) (outcome, error) {
	if g.off.Load() {
		return once(ctx, g.client, t)
	}
	own, err := g.take(ctx)
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		if !g.off.Swap(true) {
			g.log.Warn("etcd's user may not write below "+guardPrefix+"; a write waits for the member that it was sent to",
				"error", err)
		}
		return once(ctx, g.client, t)
	case err != nil:
		return outcome{}, err
	}
	lease, err := g.leased(ctx)
	if err != nil {
		g.put(own)
		return outcome{}, err
	}
	mark := strconv.FormatInt(g.marks.Add(1), 36)
	w := &attempts{guards: g, own: own, mark: mark, looks: len(t.looks)}
	w.t = transaction{
		conditions: append(t.conditions[:len(t.conditions):len(t.conditions)], own.unchanged()),
		effects: append(t.effects[:len(t.effects):len(t.effects)],
			clientv3.OpPut(own.key, mark, clientv3.WithLease(lease))),
		looks: append(t.looks[:len(t.looks):len(t.looks)], clientv3.OpGet(own.key)),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return w.run(ctx)
}

func (g *guard) unchanged() clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(g.key), "=", g.rev)
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
	resp, err := hedge(ctx, g.suspect, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return g.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(own.key), "=", 0)).
			Then(clientv3.OpPut(own.key, "", clientv3.WithLease(lease))).Else(clientv3.OpGet(own.key)).Commit()
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
func (g *guards) leased(ctx context.Context) (clientv3.LeaseID, error) {
	g.granting.Lock()
	defer g.granting.Unlock()
	g.mu.Lock()
	lease, until := g.mu.lease, g.mu.until
	g.mu.Unlock()
	if lease != 0 && time.Now().Before(until) {
		return lease, nil
	}
	granted, err := hedge(ctx, g.suspect, func(ctx context.Context) (*clientv3.LeaseGrantResponse, error) {
		return g.client.Grant(ctx, int64(guardTTL/time.Second))
	})
	if err != nil {
		return 0, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.lease, g.mu.until = granted.ID, time.Now().Add(guardTTL/2)
	return granted.ID, nil
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
	_, _ = g.client.Revoke(ctx, lease) // else they end with the lease
}
