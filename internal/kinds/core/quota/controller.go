package quota

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// quotas keeps the status of ResourceQuotas: what is allowed, and how much there is. New objects are charged by
// admission (Plugin); here is what admission does not see: deletions, pods that end, and writes that were charged and
// failed. Its keys are "namespace/name".
type quotas struct {
	*part.Host
	// plugin knows what has been charged for objects that are not in the view yet; nil if it is switched off.
	plugin *Plugin
	// limited is known to the view's goroutine only: the quotas of each namespace that has any.
	limited map[string]map[string]bool
}

func newQuotas(h *part.Host, plugin *Plugin) *quotas {
	return &quotas{Host: h, plugin: plugin, limited: map[string]map[string]bool{}}
}

var quotasResource = catalog.GroupResource{Resource: "resourcequotas"}

func (q *quotas) Observe(ev *watchcache.Event, need func(string)) {
	switch prefix := ev.Collection.Prefix(); {
	case prefix == "resourcequotas":
		q.note(ev)
		if ev.Type == watchcache.Added || ev.Type == watchcache.Modified && !sameSpec(ev.Prev, ev.Entry) {
			need(ev.Entry.Key())
		}
	case prefix == control.DefinitionsPrefix: // a name in a quota may mean something now
		for namespace := range q.limited {
			q.all(namespace, need)
		}
		return
	}
	if len(q.limited[ev.Entry.Namespace]) > 0 && (ev.Type == watchcache.Deleted || ended(ev)) {
		q.all(ev.Entry.Namespace, need)
	}
}

func (q *quotas) note(ev *watchcache.Event) {
	namespace := ev.Entry.Namespace
	if ev.Type == watchcache.Deleted {
		if delete(q.limited[namespace], ev.Entry.Name); len(q.limited[namespace]) == 0 {
			delete(q.limited, namespace)
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

// ended reports whether a pod has ended just now: it is not counted any more. Services may give ports back by any
// change.
func ended(ev *watchcache.Event) bool {
	if ev.Type != watchcache.Modified {
		return false
	}
	switch ev.Collection.Prefix() {
	case "pods":
		was, _ := ev.Prev.Field("status.phase")
		is, _ := ev.Entry.Field("status.phase")
		return was != is
	case "services/specs":
		return !sameSpec(ev.Prev, ev.Entry)
	}
	return false
}

func sameSpec(a, b *watchcache.Entry) bool {
	was, err := codec.Field(a.JSON(), "spec")
	is, err2 := codec.Field(b.JSON(), "spec")
	return err == nil && err2 == nil && bytes.Equal(was, is)
}

// sweep looks at all quotas: writes that were charged and failed leave no event.
func (q *quotas) Sweep(need func(string)) {
	q.View.Collection("resourcequotas").Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		need(e.Key())
		return true
	})
}

func (q *quotas) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	call, err := q.Verbs.Call(quotasResource, namespace, name, control.ControllerUser("resourcequota-controller"))
	if err != nil {
		return err
	}
	call.Subresource = "status"
	_, err = q.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: "kube-controller-manager"},
		func(obj object.Object) (object.Object, error) {
			// The quota is as new as the view. A charge that comes after this look makes the write fail, and it is
			// tried again.
			return obj, q.refresh(obj, namespace)
		})
	return control.IgnoreNotFound(err)
}

// refresh sets the status of a quota right.
func (q *quotas) refresh(obj object.Object, namespace string) error {
	data, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	var have corev1.ResourceQuota
	if err := json.Unmarshal(data, &have); err != nil {
		return err
	}
	want := corev1.ResourceQuotaStatus{Hard: have.Spec.Hard, Used: corev1.ResourceList{}}
	counts := q.count(namespace, have.Spec.Hard)
	for name := range have.Spec.Hard {
		if n, ok := counts[string(name)]; ok {
			want.Used[name] = *resource.NewQuantity(n, resource.DecimalSI)
		}
	}
	if sameQuantities(have.Status.Hard, want.Hard) && sameQuantities(have.Status.Used, want.Used) {
		return nil
	}
	obj["status"] = object.Object{"hard": texts(want.Hard), "used": texts(want.Used)}
	return nil
}

// count returns how much there is of what the quota limits, what is on its way into the store included.
func (q *quotas) count(namespace string, hard corev1.ResourceList) Usage {
	for {
		pending := q.pending(namespace)
		counts := Usage{}
		for name := range hard {
			if n, ok := Count(q.View, q.Catalog.Snapshot(), namespace, string(name)); ok {
				counts[string(name)] = n + pending[string(name)]
			}
		}
		// An object that came into view meanwhile may be counted twice or not at all.
		if maps.Equal(pending, q.pending(namespace)) {
			return counts
		}
	}
}

func (q *quotas) pending(namespace string) Usage {
	if q.plugin == nil {
		return nil
	}
	return q.plugin.Pending(namespace)
}

func sameQuantities(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

func texts(list corev1.ResourceList) object.Object {
	out := object.Object{}
	for name, quantity := range list {
		out[string(name)] = quantity.String()
	}
	return out
}
