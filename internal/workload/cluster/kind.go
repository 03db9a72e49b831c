package cluster

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Kind is a built-in kind as components use it. T is its Go type.
type Kind[T any, P interface {
	*T
	metav1.Object
}] struct {
	ref.Names
}

// Is reports whether an event is about an object of the kind.
func (k Kind[T, P]) Is(ev *watchcache.Event) bool { return ev.Collection.Prefix() == k.Prefix }

// GroupVersionKind returns the kind as owner references name it.
func (k Kind[T, P]) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

// Get returns an object from the view, or nil if it does not exist. The caller owns it.
func (k Kind[T, P]) Get(c *Cluster, namespace, name string) P {
	e := c.View.Collection(k.Prefix).Snapshot().Get(namespace, name)
	if e == nil {
		return nil
	}
	return k.Decode(c, e)
}

// Decode returns the object of an entry, nil if it cannot be read. The caller owns it.
func (k Kind[T, P]) Decode(c *Cluster, e *watchcache.Entry) P {
	if e.Unreadable() != nil {
		return nil
	}
	return k.decodeFrom(c, e, e.Peek())
}

// decodeFrom decodes the object of a readable entry: from data, unless it is stored in another version.
func (k Kind[T, P]) decodeFrom(c *Cluster, e *watchcache.Entry, data []byte) P {
	if e.APIVersion != k.apiVersion() {
		var err error
		if data, err = k.converted(c, e); err != nil {
			return nil
		}
	}
	obj := P(new(T))
	if json.Unmarshal(data, obj) != nil {
		return nil
	}
	return obj
}

// converted returns an entry in the kind's version. A server that emulates an older release may store another.
func (k Kind[T, P]) converted(c *Cluster, e *watchcache.Entry) ([]byte, error) {
	r := c.Catalog.Snapshot().Resource(k.Group, k.Resource)
	if r == nil || r.Version(k.Version) == nil {
		return nil, verb.NotServed()
	}
	obj, err := c.Verbs.Read(context.Background(), r, r.Version(k.Version), e)
	if err != nil {
		return nil, err
	}
	return json.Marshal(obj)
}

// Find returns the objects in a namespace ("" for all) that have a value by an index, sorted by namespace and name.
func (k Kind[T, P]) Find(c *Cluster, ix watchcache.Index, value, namespace string) []P {
	var out []P
	add := func(e *watchcache.Entry) bool {
		if e.Unreadable() == nil && ix.Value(e) == value {
			if obj := k.Decode(c, e); obj != nil {
				out = append(out, obj)
			}
		}
		return true
	}
	s := c.View.Collection(k.Prefix).SnapshotBy(ix)
	if !s.Find(ix.Name, value, namespace, "", add) {
		s.Scan(namespace, "", add)
	}
	return out
}

// Create creates an object and returns it as stored.
func (k Kind[T, P]) Create(ctx context.Context, c *Cluster, obj P) (P, error) {
	raw, err := k.create(ctx, c, obj)
	if err != nil {
		return nil, err
	}
	return fromObject[T, P](raw)
}

// CreateNamed is Create for callers that need only the object's name, which is cheaper.
func (k Kind[T, P]) CreateNamed(ctx context.Context, c *Cluster, obj P) (name string, err error) {
	raw, err := k.create(ctx, c, obj)
	return object.String(raw, "metadata", "name"), err
}

func (k Kind[T, P]) create(ctx context.Context, c *Cluster, obj P) (object.Object, error) {
	call, err := k.call(c, obj.GetNamespace(), "")
	if err != nil {
		return nil, err
	}
	raw, err := k.complete(c, call, obj)
	if err != nil {
		return nil, err
	}
	res, err := c.Verbs.Create(ctx, call, raw, metav1.CreateOptions{FieldManager: c.Manager})
	if err != nil {
		return nil, err
	}
	return res.Object, nil
}

// complete returns an object in the form that verb's Create takes.
func (k Kind[T, P]) complete(c *Cluster, call *verb.Call, obj P) (object.Object, error) {
	if call.Version.Name == k.Version {
		return c.Verbs.NewTyped(call, obj)
	}
	raw, err := toObject(obj)
	if err != nil {
		return nil, err
	}
	return c.Verbs.New(call, raw)
}

// Update changes an object. change gets the current state, and is called again after a conflicting write. Its error
// aborts the update and is returned. A deleted or recreated object is a NotFound error. Update writes nothing if change
// changed nothing. It returns the stored object.
func (k Kind[T, P]) Update(ctx context.Context, c *Cluster, of P, change func(P) error) (P, error) {
	return k.update(ctx, c, of, "", change)
}

// UpdateStatus is Update for the status alone.
func (k Kind[T, P]) UpdateStatus(ctx context.Context, c *Cluster, of P, change func(P) error) (P, error) {
	return k.update(ctx, c, of, "status", change)
}

func (k Kind[T, P]) update(
	ctx context.Context, c *Cluster, of P, subresource string, change func(P) error,
) (P, error) {
	to := Target{Namespace: of.GetNamespace(), Name: of.GetName(), UID: string(of.GetUID()), Subresource: subresource}
	res, err := k.edit(ctx, c, to, func(raw object.Object) (object.Object, error) {
		obj, err := fromObject[T, P](raw)
		if err != nil {
			return nil, err
		}
		if err := change(obj); err != nil {
			return nil, err
		}
		return toObject(obj)
	})
	if err != nil {
		return nil, err
	}
	return fromObject[T, P](res.Object)
}

// Target identifies the object of a write. An empty UID matches any object with the name.
type Target struct{ Namespace, Name, UID, Subresource string }

// Edit is Update on decoded JSON, which is cheaper. change may modify its argument.
func (k Kind[T, P]) Edit(ctx context.Context, c *Cluster, to Target, change func(object.Object) error) error {
	_, err := k.edit(ctx, c, to, func(raw object.Object) (object.Object, error) { return raw, change(raw) })
	return err
}

func (k Kind[T, P]) edit(
	ctx context.Context, c *Cluster, to Target, change func(object.Object) (object.Object, error),
) (*verb.Result, error) {
	call, err := k.call(c, to.Namespace, to.Name)
	if err != nil {
		return nil, err
	}
	call = call.Under(to.Subresource)
	return c.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: c.Manager},
		func(raw object.Object) (object.Object, error) {
			if to.UID != "" && object.String(raw, "metadata", "uid") != to.UID {
				return nil, apierrors.NewNotFound(call.GroupResource(), to.Name)
			}
			return change(raw)
		})
}

// Delete deletes an object. o may have preconditions.
func (k Kind[T, P]) Delete(ctx context.Context, c *Cluster, of P, o metav1.DeleteOptions) error {
	if o.Preconditions == nil {
		uid := of.GetUID()
		o.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	call, err := k.call(c, of.GetNamespace(), of.GetName())
	if err != nil {
		return err
	}
	_, err = c.Verbs.Delete(ctx, call, o)
	return err
}

func (k Kind[T, P]) call(c *Cluster, namespace, name string) (*verb.Call, error) {
	call, err := c.Verbs.Call(k.GroupResource(), namespace, name, c.User)
	if err == nil && call.Version.Name != k.Version {
		if v := call.Resource.Version(k.Version); v != nil {
			call = call.In(v)
		}
	}
	return call, err
}

func (k Kind[T, P]) apiVersion() string { return k.GroupVersionKind().GroupVersion().String() }

func toObject(obj any) (object.Object, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

func fromObject[T any, P interface {
	*T
	metav1.Object
}](raw object.Object) (P, error) {
	obj := P(new(T))
	return obj, runtime.DefaultUnstructuredConverter.FromUnstructured(raw, obj)
}
