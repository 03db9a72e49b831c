package cluster

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Index finds objects by their controller, and holds what has been decoded of the view for as long as the view has it.
// Controllers of one server share it. What it returns is shared: read only. It is safe for concurrent use.
type Index struct {
	host *part.Host
	// decoded holds a P of a Kind[T, P] by the weak.Pointer[watchcache.Entry] that it was decoded of.
	decoded sync.Map

	mu sync.RWMutex
	// collections are those that are indexed, by prefix.
	collections map[string]*owned
}

// owned is the index of a collection: the owner of each object by its key, and the names of each owner's objects.
type owned struct {
	of map[string]keeper
	by map[keeper]map[string]struct{}
}

// keeper is a controller, of uid "" in the place of none.
type keeper struct{ namespace, uid string }

// Shared makes one Index for all controllers of a server. Its zero value is ready.
type Shared struct {
	mu    sync.Mutex
	index *Index
}

// Of returns the index of a server, whose view has not loaded when it is called first.
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
		x.collections[prefix] = &owned{of: map[string]keeper{}, by: map[keeper]map[string]struct{}{}}
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
		c.remove(ev.Entry)
		if ev.Type != watchcache.Deleted {
			c.add(ev.Entry)
		}
	}
}

func (c *owned) remove(e *watchcache.Entry) {
	o, ok := c.of[e.Key()]
	if !ok {
		return
	}
	delete(c.of, e.Key())
	delete(c.by[o], e.Name)
	if len(c.by[o]) == 0 {
		delete(c.by, o)
	}
}

func (c *owned) add(e *watchcache.Entry) {
	o := keeper{e.Namespace, Owner(e).UID}
	c.of[e.Key()] = o
	if c.by[o] == nil {
		c.by[o] = map[string]struct{}{}
	}
	c.by[o][e.Name] = struct{}{}
}

// names returns the names of the objects of an owner, and of those of none if orphans is set, sorted.
func (x *Index) names(prefix, namespace, uid string, orphans bool) (out []string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	c := x.collections[prefix]
	for name := range c.by[keeper{namespace, uid}] {
		out = append(out, name)
	}
	if orphans {
		for name := range c.by[keeper{namespace: namespace}] {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Fresh waits until the view has everything that any server has acknowledged before the call.
func (x *Index) Fresh(ctx context.Context) error {
	_, err := x.host.View.Fresh(ctx)
	return err
}

// Read returns an object of the view, nil if there is none.
func (k Kind[T, P]) Read(x *Index, namespace, name string) P {
	return k.decode(x, x.host.View.Collection(k.Prefix).Snapshot().Get(namespace, name))
}

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

// Selected returns the objects in a namespace whose labels a selector matches, sorted by name.
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

// Controlled returns the objects in a namespace whose controller has a uid and, if orphans is set, those that have no
// controller, sorted by name. Pods, ReplicaSets, Jobs and ControllerRevisions are indexed so.
func (k Kind[T, P]) Controlled(x *Index, namespace, uid string, orphans bool) (out []P) {
	snapshot := x.host.View.Collection(k.Prefix).Snapshot()
	for _, name := range x.names(k.Prefix, namespace, uid, orphans) {
		if obj := k.decode(x, snapshot.Get(namespace, name)); obj != nil {
			out = append(out, obj)
		}
	}
	return out
}

// decode returns an entry's object, decoded once, without managedFields. It is nil for nil, and for what cannot be
// read.
func (k Kind[T, P]) decode(x *Index, e *watchcache.Entry) P {
	if e == nil {
		return nil
	}
	if e = e.LastReadable(); e == nil {
		return nil
	}
	key := weak.Make(e)
	if obj, ok := x.decoded.Load(key); ok {
		return obj.(P)
	}
	obj := k.Decode(&Cluster{Host: x.host}, e)
	if obj == nil {
		return nil
	}
	obj.SetManagedFields(nil) // no controller looks at them, and they are half of the object
	if kept, there := x.decoded.LoadOrStore(key, obj); there {
		return kept.(P)
	}
	runtime.AddCleanup(e, func(key weak.Pointer[watchcache.Entry]) { x.decoded.Delete(key) }, key)
	return obj
}

// NeedMatching names the keys of the objects that may adopt the object of an event, if it has no controller: those in
// its namespace whose selector matches its labels.
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

// Names returns the names of the objects in a namespace of which the controller has a uid, sorted.
func (x *Index) Names(prefix, namespace, uid string) []string {
	return x.names(prefix, namespace, uid, false)
}
