package control

import (
	"context"
	"errors"
	"net/netip"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keepEvery is how often Keep looks, as kube-apiserver does.
const keepEvery = 10 * time.Second

// Keep makes again what Bootstrap and BootstrapServices have made and somebody has deleted, until ctx ends: system
// namespaces, the day since which uses of tokens are noted, the service "kubernetes", and its ServiceCIDR. What
// admission has refused is tried again, too. That is also how a cluster gets another range: whoever starts the server
// with a new flag deletes the old ones.
func (cs *Controllers) Keep(ctx context.Context, ranges []netip.Prefix, port int) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := cs.keep(ctx, ranges, port); err != nil && ctx.Err() == nil {
				cs.config.Log.Warn(
					"an object that the server always has is missing and cannot be made; it is tried again", "error",
					err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// keep is one round. It writes nothing, and asks etcd nothing, as long as everything is there.
func (cs *Controllers) keep(ctx context.Context, ranges []netip.Prefix, port int) error {
	r := cs.config.Rest
	err := errors.Join(makeNamespaces(ctx, r), makeTracking(ctx, r))
	if !rangeSettled(r, ranges) {
		err = errors.Join(err, cs.makeRange(ctx, ranges))
	}
	if r.View.Collection(servicesPrefix).Snapshot().Get(metav1.NamespaceDefault, kubernetesService) == nil {
		err = errors.Join(err, bootstrapService(ctx, r, ranges[0], port))
	}
	return err
}
