package control

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// collector deletes objects without remaining owners, and releases owners that wait for their dependents. It is
// Kubernetes' garbage collector without an informer for each kind. Objects of other servers are followed like
// Kubernetes does (remotes).
//
// Kubernetes' collector must ask the API server whether an owner exists, because its informers are not synchronized.
// The view is one log: an object cannot refer to an owner's uid before the owner was created, so where a reference is
// in view, its owner or its owner's deletion is, too.
type collector struct {
	Config
	need func(key string)

	mu struct {
		sync.Mutex
		graph graph
		// parked holds objects with an owner of an unknown kind; they are checked again when a definition, or another
		// server's resource list, changes.
		parked map[location]bool
		remote remotesLocked
	}
	remotes remotes
}

// collectors is how many objects the garbage collector works on at a time, as in kube-controller-manager.
const collectors = 20

// garbageCollector is the name that it acts under.
const garbageCollector = "generic-garbage-collector"

func newCollector(c Config) *collector {
	g := &collector{Config: c}
	g.mu.graph = newGraph()
	g.mu.parked = map[location]bool{}
	g.initRemotes()
	return g
}

// Requests sets the function that requests items outside of Observe.
func (g *collector) Requests(need func(string)) { g.need = need }

// Observe updates the graph, and requests items that may have lost their last owner or the object they waited for.
func (g *collector) Observe(ev *watchcache.Event, need func(string)) {
	if ev.Collection.Prefix() == "events" {
		return // as in Kubernetes: they own nothing and are numerous
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
	g.replace(ev.Collection, ev.Prev, now, need)
}

// replace records that is has replaced was; nil means no object. The caller holds the lock.
func (g *collector) replace(h home, was, is *watchcache.Entry, need func(string)) {
	if was != nil && is != nil && was.UID != is.UID { // deleted and recreated, seen as one change
		g.change(h, was, nil, need)
		was = nil
	}
	g.change(h, was, is, need)
}

// change records that an object has changed from was to is; nil means no object. The caller holds the lock.
func (g *collector) change(h home, was, is *watchcache.Entry, need func(string)) {
	before, after := ownershipOf(was), ownershipOf(is)
	some := was
	if is != nil {
		some = is
	}
	at := location{h, some.Key()}
	if !bytes.Equal(before.raw, after.raw) {
		old, refs := before.references(), after.references()
		g.mu.graph.set(at, old, refs, func(p location) { need(p.String()) })
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
	case is == nil && was.Unreadable() != nil:
		delete(g.mu.parked, at)
		g.loseUnknown(need)
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

// loseUnknown handles the deletion of an unreadable object, known only by its name: it enqueues every object with an
// owner.
func (g *collector) loseUnknown(need func(string)) {
	for uid := range g.mu.graph.owners {
		need(spreadPrefix + uid)
	}
}

// unpark looks again at the objects that wait for a kind. The catalog has the definition already: it listens first.
func (g *collector) unpark(need func(string)) {
	for p := range g.mu.parked {
		need(p.String())
	}
	clear(g.mu.parked)
}

// spreadPrefix begins a key that stands for all dependents of the owner with the following uid. It keeps a crowd of
// dependents out of the view's goroutine.
const spreadPrefix = "dependents-of:"

func (g *collector) Reconcile(ctx context.Context, key string) error {
	if uid, ok := strings.CutPrefix(key, spreadPrefix); ok {
		all, _ := g.dependents(uid)
		for _, p := range all {
			g.need(p.String())
		}
		return nil
	}
	prefix, name, _ := strings.Cut(key, " ")
	if !strings.HasPrefix(prefix, "/") {
		return g.collect(ctx, location{g.View.Collection(prefix), name})
	}
	if f := g.follower(prefix); f != nil {
		return g.collect(ctx, location{f, name})
	}
	return nil
}

func (g *collector) dependents(uid string) (all, blocking []location) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.graph.dependents(uid)
}

// collect checks one object by the current view, and acts.
func (g *collector) collect(ctx context.Context, at location) error {
	e := at.entry()
	if e == nil {
		return nil
	}
	if err := g.catchUp(ctx, at, e); err != nil {
		return err
	}
	res := g.resourceAt(at)
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
			g.need(at.String()) // it appeared between the look and the parking
		}
		return nil
	case errors.Is(err, errNamespacedOwner):
		return nil // no later change can repair it
	case err != nil:
		return err
	}
	if err := g.act(ctx, it, decide(s), all, blocking); err != nil {
		return err
	}
	return s.again()
}

// catchUp waits until the graph includes all changes before this state of the object.
func (g *collector) catchUp(ctx context.Context, at location, e *watchcache.Entry) error {
	if _, remote := at.home.(*follower); remote {
		_, err := g.View.Fresh(ctx)
		return err
	}
	return g.View.WaitFor(ctx, e.Revision)
}

// resourceAt returns the resource of an object, nil if it is no longer served.
func (g *collector) resourceAt(p location) *catalog.Resource {
	if f, remote := p.home.(*follower); remote {
		return f.kind.resource
	}
	return g.Catalog.Snapshot().ByPrefix(p.home.Prefix())
}

func (g *collector) park(at location) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.parked[at] = true
}

// item is an object in hand.
type item struct {
	at        location
	resource  *catalog.Resource
	entry     *watchcache.Entry
	ownership ownership
}

// subject collects the input of decide, and the item's dependents.
func (g *collector) subject(ctx context.Context, it item) (s subject, all, blocking []location, err error) {
	all, blocking = g.dependents(it.entry.UID)
	if it.resource.Namespaced {
		all, blocking = dependentsWithin(it.entry.Namespace, all), dependentsWithin(it.entry.Namespace, blocking)
	}
	s = subject{
		deleting: it.entry.Deleting, finalizers: it.ownership.finalizers, dependents: len(all), blocking: len(blocking),
	}
	if s.deleting {
		if waitsForCollector(s.finalizers) {
			err = g.receivedAll()
		}
		return s, all, blocking, err
	}
	for _, ref := range it.ownership.references() {
		state, err := dangling, error(nil)
		if !g.gone(string(ref.UID)) {
			state, err = g.stateOf(it.entry.Namespace, ref)
			if errors.Is(err, errRemoteKind) {
				state, err = g.remoteState(ctx, it.entry.Namespace, ref, &s)
			}
			if state == dangling && !errors.Is(err, errUnknownKind) {
				g.reportForeign(ctx, it, ref)
			}
		}
		if err != nil {
			return s, nil, nil, err
		}
		s.owners = append(s.owners, owned{string(ref.UID), state})
		if state == waiting {
			s.circular = slices.ContainsFunc(all, func(p location) bool {
				e := p.entry()
				return e != nil && waitsForDependents(e)
			})
		}
	}
	return s, all, blocking, nil
}

// dependentsWithin returns the places in a namespace. An object in another namespace cannot have this owner, whatever
// its references: it neither delays a deletion nor is changed by it. Otherwise a user of that namespace could block the
// owner's deletion.
func dependentsWithin(namespace string, locations []location) []location {
	return slices.DeleteFunc(locations, func(p location) bool {
		in, _, namespaced := strings.Cut(p.key, "/")
		return !namespaced || in != namespace
	})
}

func (g *collector) gone(uid string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.graph.gone(uid)
}
