package embedded

import (
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// A lease that etcd has lost does not fail a write.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	s, l := open(t, Config{}) // etcd's warning is allowed by open
	ctx := testContext(t)
	w := s.With(store.Options{TTL: time.Hour})
	if _, err := w.Create(ctx, "a", nil); err != nil {
		t.Fatal(err)
	}
	leases, err := l.client.Leases(ctx)
	if err != nil || len(leases.Leases) != 1 {
		t.Fatal(leases, err)
	}
	if _, err := l.client.Revoke(ctx, leases.Leases[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Create(ctx, "b", nil); err != nil {
		t.Error(err)
	}
}
