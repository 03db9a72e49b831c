package external

import (
	"context"
	"errors"
	"math"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// lostGuards is how often a write begins again because etcd has lost its guard: once is enough, unless etcd is restored
// meanwhile.
const lostGuards = 3

// Commit implements store.Backend. With several members it sends the transaction under a guard, as often as it takes.
func (r *remote) Commit(ctx context.Context, t *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	commit := r.once
	if r.guards != nil {
		commit = r.guards.commit
	}
	resp, err := commit(ctx, t)
	for range lostGuards {
		if !errors.Is(err, errGuardLost) {
			break
		}
		resp, err = commit(ctx, t)
	}
	if err == nil || errors.Is(err, errGuardLost) {
		return resp, err
	}
	if err = store.WriteError(err); errors.Is(err, store.ErrNoSpace) {
		r.full.Store(true)
	}
	return nil, err
}

// once sends a transaction one time.
func (r *remote) once(ctx context.Context, t *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	resp, err := r.kv.Txn(ctx, t, grpc.MaxCallSendMsgSize(maxRequestBytes), grpc.MaxCallRecvMsgSize(math.MaxInt32))
	return resp, clientv3.ContextError(ctx, err)
}

// Grant implements store.Backend.
func (r *remote) Grant(ctx context.Context, seconds int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	lease, err := r.grant(ctx, seconds)
	switch {
	case errors.Is(err, rpctypes.ErrNoSpace):
		r.full.Store(true)
		return 0, store.ErrNoSpace
	case err != nil:
		return 0, store.ReadError(err)
	}
	return lease, nil
}

// hedged sends a transaction that may be repeated.
func (r *remote) hedged(ctx context.Context, t *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	return hedge(ctx, r.suspect, func(ctx context.Context) (*etcdserverpb.TxnResponse, error) { return r.once(ctx, t) })
}

func (r *remote) suspect() { r.members.suspect() }

func (r *remote) revoke(ctx context.Context, lease int64) error {
	_, err := r.client.Revoke(ctx, clientv3.LeaseID(lease))
	return err
}

// grant requests a lease. A second request, of another member, leaves one that is not used.
func (r *remote) grant(ctx context.Context, seconds int64) (int64, error) {
	resp, err := hedge(ctx, r.suspect, func(ctx context.Context) (*clientv3.LeaseGrantResponse, error) {
		return r.client.Grant(ctx, seconds)
	})
	if err != nil {
		return 0, err
	}
	return int64(resp.ID), nil
}

// Compact implements store.Backend.
func (r *remote) Compact(ctx context.Context, rev int64) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := r.client.Compact(ctx, rev)
	return store.ReadError(err)
}
