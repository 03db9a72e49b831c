package quota

import (
	"bytes"
	"context"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// quotas maintains the status of ResourceQuotas: hard and used. Its keys are "namespace/name".
type quotas struct {
	*part.Host
	ledger *ledger
	// limited holds the quotas of each namespace that has any. Only the view's goroutine uses it.
	limited map[string]map[string]bool
}

func newQuotas(h *part.Host, l *ledger) *quotas {
	return &quotas{Host: h, ledger: l, limited: map[string]map[string]bool{}}
}

var quotasResource = ref.ResourceQuotas.GroupResource()

// changing are the resources with a usage that updates can change.
var changing = map[string]bool{
	ref.Pods.Prefix: true, ref.Services.Prefix: true, ref.PersistentVolumeClaims.Prefix: true,
	ref.ResourceClaims.Prefix: true,
}

func (q *quotas) Observe(ev *watchcache.Event, need func(string)) {
	switch prefix := ev.Collection.Prefix(); {
	case prefix == ref.ResourceQuotas.Prefix:
		q.note(ev)
		if ev.Type == watchcache.Modified {
			if !sameSpec(ev.Prev, ev.Entry) {
				need(ev.Entry.Key())
			}
			return // this controller's own writes do not matter
		}
	case prefix == control.DefinitionsPrefix || prefix == ref.DeviceClasses.Prefix: // a name may have a new meaning
		for namespace := range q.limited {
			q.all(namespace, need)
		}
		return
	case ev.Type == watchcache.Modified && !changing[prefix]:
		return
	}
	q.all(ev.Entry.Namespace, need)
}

func (q *quotas) note(ev *watchcache.Event) {
	namespace := ev.Entry.Namespace
	if ev.Type == watchcache.Deleted {
		if delete(q.limited[namespace], ev.Entry.Name); len(q.limited[namespace]) == 0 {
			delete(q.limited, namespace)
			q.ledger.forget(namespace)
		}
		return
	}
	if q.limited[namespace] == nil {
		q.limited[namespace] = map[string]bool{}
	}
	q.limited[namespace][ev.Entry.Name] = true
}

func (q *quotas) all(namespace string, need func(string)) {
	for name := range q.limited[namespace] {
		need(namespace + "/" + name)
	}
}

func sameSpec(a, b *watchcache.Entry) bool {
	was, err := codec.Field(a.JSON(), "spec")
	is, err2 := codec.Field(b.JSON(), "spec")
	return err == nil && err2 == nil && bytes.Equal(was, is)
}

// Sweep requests all quotas: a pod that exceeds its grace period causes no event.
func (q *quotas) Sweep(need func(string)) {
	q.View.Collection(ref.ResourceQuotas.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		need(e.Key())
		return true
	})
}

func (q *quotas) Reconcile(ctx context.Context, key string) error {
	return q.update(ctx, key, q.refresh)
}

// update changes the status of a quota, if set changes anything.
func (q *quotas) update(ctx context.Context, key string, set func(object.Object) error) error {
	namespace, name, _ := strings.Cut(key, "/")
	call, err := q.Verbs.Call(quotasResource, namespace, name, control.ControllerUser("resourcequota-controller"))
	if err != nil {
		return err
	}
	call = call.Under("status")
	_, err = q.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: "kube-controller-manager"},
		func(obj object.Object) (object.Object, error) {
			return obj, set(obj)
		})
	return control.IgnoreNotFound(err)
}

// refresh updates the status of a quota. Resources that are not counted here keep their values.
func (q *quotas) refresh(obj object.Object) error {
	have, err := typed[corev1.ResourceQuota](codec.AppendJSON(nil, obj))
	if err != nil {
		return err
	}
	names := sortedNames(have.Spec.Hard)
	used := masked(have.Status.Used, names)
	maps.Copy(used, q.ledger.used(have, have.Spec.Hard, names))
	if have.Status.Hard != nil && sameQuantities(have.Status.Hard, have.Spec.Hard) &&
		sameQuantities(have.Status.Used, used) {
		return nil
	}
	obj["status"] = object.Object{"hard": texts(have.Spec.Hard), "used": texts(used)}
	return nil
}

func sameQuantities(a, b amounts) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return quantity.Cmp(x, y) == 0 })
}

func texts(list amounts) object.Object {
	out := object.Object{}
	for name, quantity := range list {
		out[string(name)] = quantity.String()
	}
	return out
}
