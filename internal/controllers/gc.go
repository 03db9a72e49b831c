package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/catalog"
	"github.com/bowsprit/bowsprit/internal/codec"
	"github.com/bowsprit/bowsprit/internal/rest"
	"github.com/bowsprit/bowsprit/internal/watchcache"
)

// collector deletes objects whose owners are gone, and lets owners go that wait for their dependents: kube's garbage
// collector, without an informer for each kind.
//
// Kube's has to ask the API server whether an owner exists, because its informers are not in step with each other. The
// view is one log: nobody can name an owner's uid before the owner was made, so where a reference is in view its owner
// is too, or its deletion.
type collector struct {
	Config
	need func(key string)

	mu struct {
		sync.Mutex
		graph graph
		// parked are objects with an owner of a kind that is not known; they are looked at again when a definition changes.
		parked map[place]bool
	}
}

// collectors is how many objects the garbage collector works on at a time, as in kube-controller-manager.
const collectors = 20

// garbageCollector is the name that it acts under.
const garbageCollector = "generic-garbage-collector"

func newCollector(c Config) *collector {
	g := &collector{Config: c}
	g.mu.graph = newGraph()
	g.mu.parked = map[place]bool{}
	return g
}

// observe keeps the graph, and names what may have lost its last owner or what it waited for.
func (g *collector) observe(ev *watchcache.Event, need func(string)) {
	if ev.Collection.Prefix() == "events" {
		return // as in kube: they own nothing, and there are many
	}
	now := ev.Entry
	if ev.Type == watchcache.Deleted {
		now = nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if ev.Collection.Prefix() == DefinitionsPrefix {
		g.unpark(need)
	}
	if prev := ev.Prev; prev != nil && now != nil && prev.UID != now.UID { // deleted and made again while nobody looked
		g.change(ev.Collection, prev, nil, need)
		g.change(ev.Collection, nil, now, need)
		return
	}
	g.change(ev.Collection, ev.Prev, now, need)
}

// change takes note that an object went from was to is; nil stands for no object. The caller holds the lock.
func (g *collector) change(c *watchcache.Collection, was, is *watchcache.Entry, need func(string)) {
	before, after := ownershipOf(was), ownershipOf(is)
	some := was
	if is != nil {
		some = is
	}
	at := place{c, some.Key()}
	if !bytes.Equal(before.raw, after.raw) {
		old, refs := before.references(), after.references()
		g.mu.graph.set(at, old, refs, func(p place) { need(p.String()) })
		lost := false
		for _, ref := range refs {
			if slices.ContainsFunc(old, func(o metav1.OwnerReference) bool { return sameOwner(o, ref) }) {
				continue
			}
			state, err := g.stateOf(some.Namespace, ref)
			lost = lost || err != nil || state != solid
		}
		if lost {
			need(at.String())
		}
	}
	switch {
	case is == nil:
		delete(g.mu.parked, at)
		if g.mu.graph.lose(was.UID) {
			need(spreadPrefix + was.UID)
		}
	case is.Deleting:
		foreground := slices.Contains(after.finalizers, metav1.FinalizerDeleteDependents)
		orphan := slices.Contains(after.finalizers, metav1.FinalizerOrphanDependents)
		g.mu.graph.wait(is.UID, at, foreground)
		begins := was == nil || !was.Deleting || !slices.Equal(before.finalizers, after.finalizers)
		if begins && (foreground || orphan) {
			need(at.String())
		}
		if begins && foreground && !orphan {
			need(spreadPrefix + is.UID)
		}
	}
}

// unpark looks again at the objects that wait for a kind. The catalog has the definition already: it listens first.
func (g *collector) unpark(need func(string)) {
	for p := range g.mu.parked {
		need(p.String())
	}
	clear(g.mu.parked)
}

// spreadPrefix begins a key that stands for all dependents of the owner whose uid follows. It keeps a crowd of dependents
// out of the view's goroutine.
const spreadPrefix = "dependents-of:"

func (g *collector) reconcile(ctx context.Context, key string) error {
	if uid, ok := strings.CutPrefix(key, spreadPrefix); ok {
		all, _ := g.dependents(uid)
		for _, p := range all {
			g.need(p.String())
		}
		return nil
	}
	prefix, name, _ := strings.Cut(key, " ")
	return g.collect(ctx, place{g.View.Collection(prefix), name})
}

func (g *collector) dependents(uid string) (all, blocking []place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.graph.dependents(uid)
}

// collect judges one object by what the view shows now, and acts.
func (g *collector) collect(ctx context.Context, at place) error {
	e := at.entry()
	if e == nil {
		return nil
	}
	// The graph must know what happened before this state of the object.
	if err := g.View.WaitFor(ctx, e.Revision); err != nil {
		return err
	}
	res := g.Catalog.Snapshot().ByPrefix(at.collection.Prefix())
	if res == nil {
		g.park(at)
		return nil
	}
	it := item{at, res, e, ownershipOf(e)}
	s, all, blocking, err := g.subject(ctx, it)
	switch {
	case errors.Is(err, errUnknownKind):
		g.Log.Debug("an owner's kind is not served; the object stays until it is", "object", at.String(), "error", err)
		g.park(at)
		if _, _, _, again := g.subject(ctx, it); !errors.Is(again, errUnknownKind) {
			g.need(at.String()) // it came between the look and the parking
		}
		return nil
	case errors.Is(err, errNamespacedOwner):
		return nil // nothing that happens later can mend it
	case err != nil:
		return err
	}
	return g.act(ctx, it, judge(s), all, blocking)
}

func (g *collector) park(at place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.parked[at] = true
}

// item is an object in hand.
type item struct {
	at        place
	resource  *catalog.Resource
	entry     *watchcache.Entry
	ownership ownership
}

// subject gathers what judge wants to know, and the item's dependents.
func (g *collector) subject(ctx context.Context, it item) (s subject, all, blocking []place, err error) {
	all, blocking = g.dependents(it.entry.UID)
	s = subject{deleting: it.entry.Deleting, finalizers: it.ownership.finalizers, dependents: len(all), blocking: len(blocking)}
	if s.deleting {
		return s, all, blocking, nil
	}
	for _, ref := range it.ownership.references() {
		state, err := dangling, error(nil)
		if !g.gone(string(ref.UID)) {
			state, err = g.stateOf(it.entry.Namespace, ref)
			if state == dangling && !errors.Is(err, errUnknownKind) {
				g.reportForeign(ctx, it, ref)
			}
		}
		if err != nil {
			return s, nil, nil, err
		}
		s.owners = append(s.owners, owned{string(ref.UID), state})
		if state == waiting {
			s.circular = slices.ContainsFunc(all, func(p place) bool {
				e := p.entry()
				return e != nil && waitsForDependents(e)
			})
		}
	}
	return s, all, blocking, nil
}

func (g *collector) gone(uid string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.graph.gone(uid)
}

var (
	errUnknownKind     = errors.New("the kind is not served")
	errNamespacedOwner = errors.New("cluster-scoped objects cannot refer to namespaced owners")
)

// stateOf finds out what has become of the owner that an object of the namespace refers to. The version is no matter:
// what an owner is called in another one is the same object.
func (g *collector) stateOf(namespace string, ref metav1.OwnerReference) (ownerState, error) {
	res := g.kindOf(ref)
	if res == nil {
		return dangling, fmt.Errorf("owner %s %s of %s: %w", ref.Kind, ref.Name, ref.APIVersion, errUnknownKind)
	}
	if !res.Namespaced {
		namespace = ""
	} else if namespace == "" {
		return dangling, errNamespacedOwner
	}
	switch e := g.View.Collection(res.Prefix).Snapshot().Get(namespace, ref.Name); {
	case e == nil || e.UID != string(ref.UID):
		return dangling, nil
	case waitsForDependents(e):
		return waiting, nil
	}
	return solid, nil
}

func (g *collector) kindOf(ref metav1.OwnerReference) *catalog.Resource {
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	if r := g.Catalog.Snapshot().ByKind(kind.Group, kind.Kind); r != nil && !r.Virtual {
		return r
	}
	return nil
}

func waitsForDependents(e *watchcache.Entry) bool {
	return e.Deleting && slices.Contains(finalizersOf(e), metav1.FinalizerDeleteDependents)
}

// reportForeign says in an Event that an owner exists, but in a namespace where it cannot own the item.
func (g *collector) reportForeign(ctx context.Context, it item, ref metav1.OwnerReference) {
	res := g.kindOf(ref)
	if res == nil || !res.Namespaced {
		return
	}
	// An owner has one name; only its namespace is in question.
	objects, found := g.View.Collection(res.Prefix).Snapshot(), false
	g.View.Collection("namespaces").Snapshot().Scan("", "", func(ns *watchcache.Entry) bool {
		e := objects.Get(ns.Name, ref.Name)
		found = e != nil && e.UID == string(ref.UID)
		return !found
	})
	if !found {
		return
	}
	err := g.record(ctx, occurrence{
		component: "garbage-collector-controller",
		about: corev1.ObjectReference{
			Kind: it.resource.Kind, APIVersion: it.entry.APIVersion, Namespace: it.entry.Namespace, Name: it.entry.Name, UID: types.UID(it.entry.UID),
		},
		kind: corev1.EventTypeWarning, reason: "OwnerRefInvalidNamespace",
		message: fmt.Sprintf("ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
			ref.APIVersion, ref.Kind, it.entry.Namespace, ref.Name, ref.UID, it.entry.Namespace),
	})
	if err != nil {
		g.Log.Info("event not recorded", "object", it.entry.Key(), "error", err)
	}
}

// act carries out a verdict.
func (g *collector) act(ctx context.Context, it item, v verdict, all, blocking []place) error {
	switch {
	case len(v.unlink) > 0:
		return g.relink(ctx, it, func(refs []any) []any { return withoutOwners(refs, v.unlink) })
	case v.remove != "":
		if v.unblock {
			if err := g.relink(ctx, it, withoutBlocking); err != nil {
				return err
			}
			it.entry = it.at.entry()
			if it.entry == nil {
				return nil
			}
			it.ownership = ownershipOf(it.entry)
		}
		return g.remove(ctx, it, v.remove)
	case v.orphan:
		if err := g.orphan(ctx, it.entry.UID, all); err != nil {
			return err
		}
		return g.release(ctx, it, metav1.FinalizerOrphanDependents)
	case v.release:
		return g.release(ctx, it, metav1.FinalizerDeleteDependents)
	case v.hurry:
		for _, p := range blocking {
			if e := p.entry(); e != nil && !waitsForDependents(e) {
				g.need(p.String())
			}
		}
	}
	return nil
}

// remove deletes an object as it was judged. If it has changed meanwhile, but not in its owners, the judgement stands.
func (g *collector) remove(ctx context.Context, it item, policy metav1.DeletionPropagation) error {
	uid, revision := types.UID(it.entry.UID), fmt.Sprint(it.entry.Revision)
	o := metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &revision}}
	call, err := g.call(it)
	if err != nil {
		return err
	}
	_, err = g.Rest.Delete(ctx, call, o)
	if apierrors.IsConflict(err) {
		e := it.at.entry()
		if e == nil || e.UID != it.entry.UID {
			return nil
		}
		if now := ownershipOf(e); bytes.Equal(now.raw, it.ownership.raw) {
			o.Preconditions.ResourceVersion = nil
			_, err = g.Rest.Delete(ctx, call, o)
		}
	}
	return ignoreNotFound(err)
}

// orphan takes an owner out of its dependents' references.
func (g *collector) orphan(ctx context.Context, uid string, dependents []place) error {
	work := make(chan place)
	errs := make([]error, min(collectors, len(dependents)))
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for p := range work {
				e, res := p.entry(), g.Catalog.Snapshot().ByPrefix(p.collection.Prefix())
				if e == nil || res == nil {
					continue
				}
				it := item{at: p, resource: res, entry: e}
				if err := g.relink(ctx, it, func(refs []any) []any { return withoutOwners(refs, []string{uid}) }); err != nil {
					errs[i] = err
				}
			}
		})
	}
	for _, p := range dependents {
		work <- p
	}
	close(work)
	wg.Wait()
	return errors.Join(errs...)
}

// relink changes the owner references of an object.
func (g *collector) relink(ctx context.Context, it item, change func([]any) []any) error {
	return g.update(ctx, it, func(meta rest.Object) {
		refs, _ := meta["ownerReferences"].([]any)
		setList(meta, "ownerReferences", change(refs))
	})
}

// release takes a finalizer from an object.
func (g *collector) release(ctx context.Context, it item, finalizer string) error {
	return g.update(ctx, it, func(meta rest.Object) {
		list, _ := meta["finalizers"].([]any)
		setList(meta, "finalizers", slices.DeleteFunc(slices.Clone(list), func(f any) bool { return f == finalizer }))
	})
}

func setList(meta rest.Object, key string, list []any) {
	if len(list) == 0 {
		delete(meta, key)
	} else {
		meta[key] = list
	}
}

// update changes an object's metadata, unless another object has taken its place.
func (g *collector) update(ctx context.Context, it item, change func(meta rest.Object)) error {
	call, err := g.call(it)
	if err != nil {
		return err
	}
	_, err = g.Rest.Update(ctx, call, metav1.UpdateOptions{FieldManager: "kube-controller-manager"}, func(obj rest.Object) (rest.Object, error) {
		meta, _ := obj["metadata"].(rest.Object)
		if meta == nil || meta["uid"] != it.entry.UID {
			return nil, apierrors.NewNotFound(schema.GroupResource{Group: it.resource.Group, Resource: it.resource.Plural}, it.entry.Name)
		}
		change(meta)
		return obj, nil
	})
	return ignoreNotFound(err)
}

func (g *collector) call(it item) (*rest.Call, error) {
	gr := catalog.GroupResource{Group: it.resource.Group, Resource: it.resource.Plural}
	return g.Rest.Call(gr, it.entry.Namespace, it.entry.Name, identity(garbageCollector))
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (p place) entry() *watchcache.Entry {
	namespace, name, namespaced := strings.Cut(p.key, "/")
	if !namespaced {
		namespace, name = "", p.key
	}
	return p.collection.Snapshot().Get(namespace, name)
}

// ownership is what the garbage collector reads of an object.
type ownership struct {
	finalizers []string
	raw        json.RawMessage // ownerReferences, nil if there are none
}

// ownershipOf reads an entry; nil gives the zero ownership. Most objects have neither owners nor a deletion that waits,
// and are not decoded.
func ownershipOf(e *watchcache.Entry) (o ownership) {
	if e == nil || !e.Deleting && !bytes.Contains(e.JSON(), []byte(`"ownerReferences":[`)) && !bytes.Contains(e.JSON(), []byte(`"finalizers":[`)) {
		return ownership{}
	}
	raw, err := codec.Field(e.JSON(), "metadata")
	if err != nil {
		return ownership{}
	}
	var meta struct {
		Finalizers      []string        `json:"finalizers"`
		OwnerReferences json.RawMessage `json:"ownerReferences"`
	}
	if json.Unmarshal(raw, &meta) != nil {
		return ownership{}
	}
	return ownership{meta.Finalizers, meta.OwnerReferences}
}

func (o ownership) references() []metav1.OwnerReference {
	var refs []metav1.OwnerReference
	if len(o.raw) == 0 || json.Unmarshal(o.raw, &refs) != nil {
		return nil
	}
	return refs
}

func sameOwner(a, b metav1.OwnerReference) bool {
	return a.UID == b.UID && a.Name == b.Name && a.Kind == b.Kind && a.APIVersion == b.APIVersion
}
