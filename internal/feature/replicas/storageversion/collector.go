package storageversion

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/feature/replicas/identity"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// collector removes the entries of servers without a Lease. Its keys are names of StorageVersions.
type collector struct{ *part.Host }

var leases = ref.Leases.GroupResource()

func (c *collector) Observe(ev *watchcache.Event, need func(string)) {
	switch at := ev.Collection.Prefix(); {
	case at == ref.StorageVersions.Prefix && ev.Type != watchcache.Deleted:
		need(ev.Entry.Name)
	case at == ref.Leases.Prefix && ev.Entry.Namespace == metav1.NamespaceSystem && leaves(ev):
		// A later write has an event of its own.
		c.View.Collection(ref.StorageVersions.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
			need(e.Name)
			return true
		})
	}
}

// leaves reports whether a Lease of a server is deleted, or ceases to be one.
func leaves(ev *watchcache.Event) bool {
	if ev.Type == watchcache.Deleted {
		return isServer(ev.Entry) || ev.Prev != nil && isServer(ev.Prev)
	}
	return ev.Prev != nil && isServer(ev.Prev) && !isServer(ev.Entry)
}

func isServer(lease *watchcache.Entry) bool { return lease.Labels[identity.Label] == identity.Server }

func (c *collector) Reconcile(ctx context.Context, name string) error {
	// In a view that lags, the entry of a new server may precede its Lease.
	if _, err := c.View.Fresh(ctx); err != nil {
		return err
	}
	all := c.View.Collection(ref.Leases.Prefix).Snapshot()
	return leave(ctx, c.Host, name, func(e entry) bool {
		lease := all.Get(metav1.NamespaceSystem, e.APIServerID)
		return lease == nil || !isServer(lease)
	})
}
