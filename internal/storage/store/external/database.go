package external

import (
	"context"
	"errors"
	"io"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// Size implements store.Maintainer with the first member that responds.
func (r *remote) Size(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := errors.New("no member of etcd is known")
	for _, member := range r.client.Endpoints() {
		var status *clientv3.StatusResponse
		if status, err = r.client.Status(ctx, member); err == nil {
			return status.DbSize, nil
		}
	}
	return 0, store.ReadError(err)
}

// CheckRoom implements store.Maintainer. The operators of the cluster make room, without notice to this process.
func (r *remote) CheckRoom(ctx context.Context) error {
	if !r.full.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	alarms, err := r.client.AlarmList(ctx)
	if err != nil {
		return store.ReadError(err)
	}
	if slices.ContainsFunc(alarms.Alarms, func(a *etcdserverpb.AlarmMember) bool {
		return a.GetAlarm() == etcdserverpb.AlarmType_NOSPACE
	}) {
		return store.ErrNoSpace
	}
	r.full.Store(false)
	return nil
}

// Snapshot implements store.Maintainer.
func (r *remote) Snapshot(ctx context.Context, w io.Writer) (written int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	from, err := r.client.Snapshot(ctx)
	if err != nil {
		return 0, store.ReadError(err)
	}
	defer from.Close()
	written, err = io.Copy(w, from)
	return written, store.ReadError(err)
}
