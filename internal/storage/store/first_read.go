package store

import (
	"context"
	"errors"

	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
)

// firstRead returns when etcd has answered a linearizable read since it leads. Until then the loop that answers those
// may wait with a notifier from before the election: on a busy machine it sees a read and the election at once, chooses
// one by chance, and if it is the read refuses it with "leader changed". No client of the embedded etcd tries again,
// and the lone member has no other election.
func firstRead(ctx context.Context, read func(context.Context) error) error {
	for {
		if err := read(ctx); !errors.Is(err, etcderrors.ErrLeaderChanged) || ctx.Err() != nil {
			return err
		}
	}
}
