package embedded

import (
	"context"
	"errors"
	"testing"

	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
)

// TestFirstRead simulates that etcd sees its election during a read, as it does on a busy machine.
func TestFirstRead(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	for _, last := range []error{nil, gone} {
		reads := 0
		err := firstRead(t.Context(), func(context.Context) error {
			if reads++; reads < 3 {
				return etcderrors.ErrLeaderChanged
			}
			return last
		})
		if !errors.Is(err, last) || reads != 3 {
			t.Errorf("%v after %d reads, want %v after 3", err, reads, last)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := firstRead(ctx, func(context.Context) error { return etcderrors.ErrLeaderChanged }); err == nil {
		t.Error("no error although the start was interrupted")
	}
}
