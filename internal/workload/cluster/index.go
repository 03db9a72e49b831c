package cluster

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Index finds objects by their controller, and caches decoded objects on the entries of the view. The controllers of a
// server share it. Returned objects are shared and must not be modified. It is safe for concurrent use.
type Index struct {
	host *part.Host

	mu sync.RWMutex
	// collections are the indexed collections, by prefix.
	collections map[string]*owned
}

// owned is the index of a collection: the owner of each object by its key, and each owner's objects, sorted by name.
type owned struct {
	of map[string]ownerKey
	by map[ownerKey][]*watchcache.Entry
}

// ownerKey is a controller, of uid "" in the place of none.
type ownerKey struct{ namespace, uid string }

// Shared creates one Index for all controllers of a server, and the Addresses of its pods. Its zero value is ready.
type Shared struct {
	mu        sync.Mutex
	index     *Index
	addresses *Addresses
}

// Addresses returns the pod addresses of a server.
func (s *Shared) Addresses() *Addresses {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addresses == nil {
		s.addresses = NewAddresses()
	}
	return s.addresses
}

// Of returns the index of a server. The first call must precede the load of the view.
func (s *Shared) Of(h *part.Host) *Index {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index == nil || s.index.host != h {
		s.index = newIndex(h)
	}
	return s.index
}

func newIndex(h *part.Host) *Index {
	x := &Index{host: h, collections: map[string]*owned{}}
	for _, prefix := range []string{Pods.Prefix, ReplicaSets.Prefix, Jobs.Prefix, ControllerRevisions.Prefix} {
		x.collections[prefix] = &owned{of: map[string]ownerKey{}, by: map[ownerKey][]*watchcache.Entry{}}
	}
	h.View.Subscribe(x.observe)
	return x
}

func (x *Index) observe(events []*watchcache.Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, ev := range events {
		c := x.collections[ev.Collection.Prefix()]
		if c == nil {
			continue
		}
		if ev = ev.Readable(); ev == nil {
			continue
		}
		if o, ok := c.of[ev.Entry.Key()]; ok && (ev.Type == watchcache.Deleted || o != ownerKeyOf(ev.Entry)) {
			c.remove(o, ev.Entry)
		}
		if ev.Type != watchcache.Deleted {
			c.put(ev.Entry)
		}
	}
}

func ownerKeyOf(e *watchcache.Entry) ownerKey { return ownerKey{e.Namespace, Owner(e).UID} }

func byName(e *watchcache.Entry, name string) int { return strings.Compare(e.Name, name) }

func (c *owned) remove(o ownerKey, e *watchcache.Entry) {
	delete(c.of, e.Key())
	at, there := slices.BinarySearchFunc(c.by[o], e.Name, byName)
	if !there {
		return
	}
	if c.by[o] = slices.Delete(c.by[o], at, at+1); len(c.by[o]) == 0 {
		delete(c.by, o)
	}
}

func (c *owned) put(e *watchcache.Entry) {
	o := ownerKeyOf(e)
	c.of[e.Key()] = o
	at, there := slices.BinarySearchFunc(c.by[o], e.Name, byName)
	if there {
		c.by[o][at] = e
	} else {
		c.by[o] = slices.Insert(c.by[o], at, e)
	}
}

// entries returns the objects of an owner, and with orphans also the objects without an owner, sorted by name.
func (x *Index) entries(prefix, namespace, uid string, orphans bool) []*watchcache.Entry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	c := x.collections[prefix]
	out := slices.Clone(c.by[ownerKey{namespace, uid}])
	if more := c.by[ownerKey{namespace: namespace}]; orphans && len(more) > 0 {
		out = append(out, more...)
		slices.SortFunc(out, func(a, b *watchcache.Entry) int { return strings.Compare(a.Name, b.Name) })
	}
	return out
}

// Rest is the rest of control.Pacers that look at all objects with a given controller: about five times the duration of
// a look, since each change of one of the objects requests one.
func (x *Index) Rest(prefix, namespace, uid string) time.Duration {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return time.Duration(len(x.collections[prefix].by[ownerKey{namespace, uid}])) * 5 * time.Microsecond
}

// RestOf is Rest for the pods of an owner, by the prefix of its collection and its key.
func (x *Index) RestOf(prefix, key string) time.Duration {
	namespace, name, _ := strings.Cut(key, "/")
	owner := x.host.View.Collection(prefix).Snapshot().Get(namespace, name)
	if owner == nil {
		return 0
	}
	return x.Rest(Pods.Prefix, namespace, owner.UID)
}

// Fresh waits until the view has everything that any server has acknowledged before the call.
func (x *Index) Fresh(ctx context.Context) error {
	_, err := x.host.View.Fresh(ctx)
	return err
}

// Read returns an object of the view, or nil if there is none.
func (k Kind[T, P]) Read(x *Index, namespace, name string) P {
	return k.decode(x, x.host.View.Collection(k.Prefix).Snapshot().Get(namespace, name))
}

// ReadEntry is ReadOnce of an entry.
func (k Kind[T, P]) ReadEntry(x *Index, e *watchcache.Entry) P { return k.once(x, e) }

// ReadAll returns the objects in a namespace ("" for all), sorted by namespace and name.
func (k Kind[T, P]) ReadAll(x *Index, namespace string) (out []P) {
	x.host.View.Collection(k.Prefix).Snapshot().Scan(namespace, "", func(e *watchcache.Entry) bool {
		if obj := k.decode(x, e); obj != nil {
			out = append(out, obj)
		}
		return true
	})
	return out
}

// Selected returns the objects in a namespace with labels that a selector matches, sorted by name.
func (k Kind[T, P]) Selected(x *Index, namespace string, selector labels.Selector) (out []P) {
	x.host.View.Collection(k.Prefix).Snapshot().Scan(namespace, "", func(e *watchcache.Entry) bool {
		if selector.Matches(labels.Set(e.Labels)) {
			if obj := k.decode(x, e); obj != nil {
				out = append(out, obj)
			}
		}
		return true
	})
	return out
}

// Controlled returns the objects in a namespace that the controller with the given uid controls and, if orphans is set,
// the objects without a controller, sorted by name. Pods, ReplicaSets, Jobs and ControllerRevisions are indexed by
// controller.
func (k Kind[T, P]) Controlled(x *Index, namespace, uid string, orphans bool) (out []P) {
	for _, e := range x.entries(k.Prefix, namespace, uid, orphans) {
		if obj := k.decode(x, e); obj != nil {
			out = append(out, obj)
		}
	}
	return out
}

// decode returns an entry's object without managedFields, and caches it. It returns nil for a nil or unreadable entry.
func (k Kind[T, P]) decode(x *Index, e *watchcache.Entry) P {
	obj := k.once(x, e)
	if obj != nil && e.LastReadable().Decoded() != any(obj) {
		e.LastReadable().CacheDecoded(obj)
	}
	return obj
}

// ReadOnce is Read for callers that look at each state of an object once: it does not cache the decoded object.
func (k Kind[T, P]) ReadOnce(x *Index, namespace, name string) P {
	return k.once(x, x.host.View.Collection(k.Prefix).Snapshot().Get(namespace, name))
}

// once is decode for callers that need no caching.
func (k Kind[T, P]) once(x *Index, e *watchcache.Entry) P {
	if e == nil {
		return nil
	}
	if e = e.LastReadable(); e == nil {
		return nil
	}
	if decoded, is := e.Decoded().(P); is {
		return decoded
	}
	obj := k.decodeFrom(&Cluster{Host: x.host}, e, e.Unmanaged()) // controllers do not read managedFields
	if obj == nil {
		return nil
	}
	obj.SetManagedFields(nil) // conversion may have kept them
	if len(e.Labels) > 0 {
		obj.SetLabels(e.Labels) // many objects share equal labels
	}
	return obj
}

// NeedMatching requests the keys of the objects that may adopt an event's object: if the object has no controller, the
// objects in its namespace with a selector that matches its labels.
func (k Kind[T, P]) NeedMatching(
	x *Index, ev *watchcache.Event, selects func(P) *metav1.LabelSelector, need func(string),
) {
	if ev.Type == watchcache.Deleted || Owner(ev.Entry).UID != "" {
		return
	}
	for _, obj := range k.ReadAll(x, ev.Entry.Namespace) {
		s, err := metav1.LabelSelectorAsSelector(selects(obj))
		if err == nil && !s.Empty() && s.Matches(labels.Set(ev.Entry.Labels)) {
			need(ev.Entry.Namespace + "/" + obj.GetName())
		}
	}
}

// Names returns the sorted names of the objects in a namespace that the controller with the given uid controls.
func (x *Index) Names(prefix, namespace, uid string) (out []string) {
	for _, e := range x.entries(prefix, namespace, uid, false) {
		out = append(out, e.Name)
	}
	return out
}
