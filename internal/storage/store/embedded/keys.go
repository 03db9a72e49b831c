package embedded

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// Range implements store.Backend.
func (l *local) Range(ctx context.Context, of store.Span) (store.Found, error) {
	ask := of.Limit
	if of.Limit > 0 {
		ask++ // one more shows whether more follow, without counting them all as etcd's Range request does
	}
	r, err := l.etcd.Server.KV().Range(ctx, of.Start, of.End, mvcc.RangeOptions{Limit: ask, Rev: of.Revision})
	switch {
	case errors.Is(err, mvcc.ErrCompacted):
		return store.Found{}, store.ErrCompacted
	case errors.Is(err, mvcc.ErrFutureRev):
		return store.Found{}, store.ErrFuture
	case err != nil:
		return store.Found{}, store.ReadError(err)
	}
	l.saw(r.Rev)
	if of.Limit > 0 && int64(len(r.KVs)) > of.Limit {
		return store.Found{Keys: r.KVs[:of.Limit], More: true, Revision: r.Rev}, nil
	}
	return store.Found{Keys: r.KVs, Revision: r.Rev}, nil
}

// Commit implements store.Backend.
func (l *local) Commit(ctx context.Context, t *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	resp, err := l.kv.Txn(ctx, t)
	if err != nil {
		err = store.WriteError(clientv3.ContextError(ctx, err))
		if errors.Is(err, store.ErrNoSpace) {
			l.room.refused()
		}
		return nil, err
	}
	l.saw(resp.Header.Revision)
	return resp, nil
}

// Grant implements store.Backend.
func (l *local) Grant(ctx context.Context, seconds int64) (int64, error) {
	granted, err := l.client.Grant(ctx, seconds)
	switch {
	case errors.Is(err, rpctypes.ErrNoSpace):
		l.room.refused()
		return 0, store.ErrNoSpace
	case err != nil:
		return 0, store.ReadError(err)
	}
	return int64(granted.ID), nil
}

// Compact implements store.Backend.
func (l *local) Compact(ctx context.Context, rev int64) error {
	_, err := l.client.Compact(ctx, rev)
	return store.ReadError(err)
}
