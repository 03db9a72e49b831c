package protection

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// protection keeps the objects of one kind while they are used. They have a finalizer, which protection removes when
// they are being deleted and are not used any more. Admission adds it to new objects, and protection adds it to older
// ones unless admitted is set. Its keys are the keys of the objects.
type protection struct {
	*part.Host
	resource  catalog.GroupResource
	prefix    string
	finalizer string
	as        string // the controller's name
	admitted  bool   // objects without the finalizer stay without it
	// freed requests the objects that may be unused after an event of another kind. It may be nil.
	freed func(ev *watchcache.Event, need func(key string))
	used  func(v *watchcache.View, e *watchcache.Entry) bool
}

func (p *protection) Observe(ev *watchcache.Event, need func(string)) {
	switch {
	case ev.Collection.Prefix() != p.prefix:
		if p.freed != nil {
			p.freed(ev, need)
		}
	case ev.Type != watchcache.Deleted && p.concerns(ev.Entry):
		need(ev.Entry.Key())
	}
}

// concerns reports whether an object may have to get the finalizer, or to lose it.
func (p *protection) concerns(e *watchcache.Entry) bool {
	return p.has(e) == e.Deleting && (e.Deleting || !p.admitted)
}

func (p *protection) has(e *watchcache.Entry) bool {
	return slices.Contains(control.Finalizers(e), p.finalizer)
}

func (p *protection) Reconcile(ctx context.Context, key string) error {
	if _, err := p.View.Fresh(ctx); err != nil { // else a use that has just begun would be missed
		return err
	}
	namespace, name, namespaced := strings.Cut(key, "/")
	if !namespaced {
		namespace, name = "", key
	}
	e := p.View.Collection(p.prefix).Snapshot().Get(namespace, name)
	if e == nil || !p.concerns(e) || e.Deleting && p.used(p.View, e) {
		return nil
	}
	call, err := p.Verbs.Call(p.resource, namespace, name, control.ControllerUser(p.as))
	if err != nil {
		return err
	}
	_, err = p.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: "kube-controller-manager"},
		func(obj object.Object) (object.Object, error) {
			meta, _ := obj["metadata"].(object.Object)
			list, _ := meta["finalizers"].([]any)
			switch has, deleting := slices.Contains(list, any(p.finalizer)), meta["deletionTimestamp"] != nil; {
			case meta["uid"] != e.UID || has != deleting: // it was recreated, or another writer has done it
			case deleting:
				meta["finalizers"] = slices.DeleteFunc(list, func(f any) bool { return f == p.finalizer })
			default:
				meta["finalizers"] = append(list, p.finalizer)
			}
			return obj, nil
		})
	return control.IgnoreNotFound(err)
}
