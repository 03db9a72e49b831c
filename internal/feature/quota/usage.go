package quota

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// usage updates status.used of ResourceQuotas if another program is the quota controller. That controller counts when a
// quota is created, when an object is deleted, and every five minutes. It relies on the server to add a creation to
// status.used at once, as kube-apiserver's admission plugin does.
type usage struct{ *quotas }

// Observe requests each changed quota, since the quota controller may have written outdated counts.
func (u usage) Observe(ev *watchcache.Event, need func(string)) {
	u.quotas.Observe(ev, need)
	if ev.Collection.Prefix() == ref.ResourceQuotas.Prefix && ev.Type == watchcache.Modified {
		need(ev.Entry.Key())
	}
}

func (u usage) Reconcile(ctx context.Context, key string) error { return u.update(ctx, key, u.recount) }

// recount sets the usage of resources that the quota controller has counted before. status.hard is left to the
// controller.
func (u usage) recount(obj object.Object) error {
	have, err := typed[corev1.ResourceQuota](codec.AppendJSON(nil, obj))
	if err != nil || len(have.Status.Used) == 0 {
		return err
	}
	names := sortedNames(have.Status.Used)
	used := masked(have.Status.Used, names)
	for name, quantity := range u.ledger.used(have, have.Status.Hard, names) {
		used[name] = quantity
	}
	if status, ok := obj["status"].(object.Object); ok && !sameQuantities(have.Status.Used, used) {
		status["used"] = texts(used)
	}
	return nil
}
