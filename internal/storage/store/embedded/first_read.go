package embedded

import (
	"context"
	"errors"

	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
)

// firstRead returns after the first linearizable read under the new leader. Until then etcd's read loop may still wait
// with a notifier from before the election. On a busy machine a read and the election become ready at once; the loop
// chooses one at random and may refuse the read with "leader changed". Clients of the embedded etcd do not retry, and a
// single member has no other election.
func firstRead(ctx context.Context, read func(context.Context) error) error {
	for {
		if err := read(ctx); !errors.Is(err, etcderrors.ErrLeaderChanged) || ctx.Err() != nil {
			return err
		}
	}
}
