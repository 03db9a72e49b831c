package control

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// remotes holds the kinds of other servers for the collector. Kinds with objects, and kinds that own objects here, are
// watched as metadata. Kinds without objects are polled occasionally, so that an unused server costs no connection and
// no goroutine.
//
// The state of another server's objects comes only from its own responses: an object is gone once a list or a watch
// lacks it, or a Status reports it. An unresponsive server causes no deletion; dependents of its objects wait for it.
type remotes struct {
	client metadata.Interface
	kinds  atomic.Pointer[map[schema.GroupKind]*remoteKind] // nil if there are none
	// wake triggers the next check of the kinds early. Its capacity is one, since one check sees all changes.
	wake chan struct{}
}

// remotesLocked is the part of remotes guarded by the collector's lock.
type remotesLocked struct {
	followers map[string]*follower // by prefix
	wanted    map[string]bool      // prefixes of kinds that objects refer to as owners
	touched   map[string]bool      // prefixes of kinds with creations since the last check
	paused    map[string]pause     // by prefix
	// settled is true once the collector has seen all objects of other servers, or has waited long enough for that.
	settled bool
	began   time.Time
}

// pause suspends requests about objects of a kind after one has failed.
type pause struct {
	until time.Time
	last  time.Duration
}

const (
	// pauseFirst and pauseMost bound a pause; it doubles each time.
	pauseFirst = time.Second
	pauseMost  = 30 * time.Second
	// peekEvery is the interval for polling kinds without objects.
	peekEvery = 30 * time.Second
	// peekTimeout bounds such a poll, and lookUpTimeout a request about an owner.
	peekTimeout   = 10 * time.Second
	lookUpTimeout = 10 * time.Second
	// settleMost is how long after the start an owner waits for dependents on other servers.
	settleMost = 30 * time.Second
	// unwatchedAgain is how often an owner that cannot be watched is looked up.
	unwatchedAgain = 5 * time.Minute
)

// remoteKind is a kind of another server. It is immutable.
type remoteKind struct {
	resource *catalog.Resource // Group, Plural, Kind and Namespaced
	gvr      schema.GroupVersionResource
	prefix   string // the path of the resource, which differs from all prefixes in the store
	watched  bool   // it supports list, watch and delete
}

// remoteKinds returns the kinds of other servers, each in the first listed version.
func remoteKinds(s *catalog.Snapshot) (kinds map[schema.GroupKind]*remoteKind, stale bool) {
	kinds = map[schema.GroupKind]*remoteKind{}
	for _, g := range s.Groups() {
		for _, gv := range g.Versions {
			if gv.Remote == nil {
				continue
			}
			stale = stale || gv.Remote.Stale
			for i := range gv.Remote.Resources {
				k := newRemoteKind(g.Name, gv.Name, &gv.Remote.Resources[i])
				if gk := (schema.GroupKind{Group: g.Name, Kind: k.resource.Kind}); kinds[gk] == nil && gk.Kind != "" {
					kinds[gk] = k
				}
			}
		}
	}
	return kinds, stale
}

func newRemoteKind(group, version string, r *apidiscoveryv2.APIResourceDiscovery) *remoteKind {
	k := &remoteKind{
		gvr:    schema.GroupVersionResource{Group: group, Version: version, Resource: r.Resource},
		prefix: "/apis/" + group + "/" + version + "/" + r.Resource,
		resource: &catalog.Resource{
			Group: group, Plural: r.Resource, Namespaced: r.Scope == apidiscoveryv2.ScopeNamespace,
		},
	}
	if group == "" {
		k.prefix = "/api/" + version + "/" + r.Resource
	}
	if r.ResponseKind != nil {
		k.resource.Kind = r.ResponseKind.Kind
	}
	k.watched = !slices.ContainsFunc([]string{"delete", "list", "watch"},
		func(verb string) bool { return !slices.Contains(r.Verbs, verb) })
	return k
}

// same reports whether two kinds with one prefix are followed in the same way.
func (k *remoteKind) same(other *remoteKind) bool {
	return k.resource.Kind == other.resource.Kind && k.resource.Namespaced == other.resource.Namespaced
}

func (g *collector) initRemotes() {
	g.remotes.wake = make(chan struct{}, 1)
	g.mu.remote = remotesLocked{
		followers: map[string]*follower{}, wanted: map[string]bool{}, paused: map[string]pause{},
		touched: map[string]bool{}, settled: g.Remote == nil,
	}
	if g.Remote == nil {
		return
	}
	var err error
	g.remotes.client, err = metadata.NewForConfigAndClient(&rest.Config{Host: "https://remote", QPS: -1},
		&http.Client{Transport: g.Remote.As(ControllerUser(garbageCollector))})
	if err != nil {
		panic(err) // the address above is valid
	}
	g.Remote.OnCreate(g.created)
}

// created notes that a kind has objects.
func (g *collector) created(prefix string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.remote.followers[prefix] == nil {
		g.mu.remote.touched[prefix] = true
		g.remotes.look()
	}
}

// look brings the next look at kinds forward.
func (r *remotes) look() {
	select {
	case r.wake <- struct{}{}:
	default: // the pending check will see it
	}
}

func (r *remotes) kindOf(ref metav1.OwnerReference) *remoteKind {
	kinds := r.kinds.Load()
	if kinds == nil {
		return nil
	}
	return (*kinds)[schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()]
}

// Run follows other servers' objects until ctx ends.
func (g *collector) Run(ctx context.Context) {
	if g.Remote == nil {
		return
	}
	g.mu.Lock()
	g.mu.remote.settled, g.mu.remote.began = false, g.Now()
	g.mu.Unlock()
	peeked := map[string]time.Time{}
	for ctx.Err() == nil {
		changed := g.Catalog.ServicesChanged()
		kinds, stale := remoteKinds(g.Catalog.Snapshot())
		var next <-chan time.Time
		if g.remotes.kinds.Store(nil); len(kinds) > 0 {
			g.remotes.kinds.Store(&kinds)
			next = time.After(peekEvery)
		}
		g.adopt(ctx, kinds, peeked)
		g.settle(stale)
		select {
		case <-changed:
		case <-g.remotes.wake:
		case <-next:
		case <-ctx.Done():
		}
	}
	g.adopt(ctx, nil, peeked)
}

// adopt follows exactly the relevant kinds. Items that wait for a kind are checked again.
func (g *collector) adopt(ctx context.Context, kinds map[schema.GroupKind]*remoteKind, peeked map[string]time.Time) {
	now := g.Now()
	keep, ask := map[string]*remoteKind{}, []*remoteKind(nil)
	g.mu.Lock()
	for _, k := range kinds {
		switch f := g.mu.remote.followers[k.prefix]; {
		case !k.watched:
		case g.mu.remote.wanted[k.prefix] || f != nil && f.kind.same(k) && !f.idleLocked():
			keep[k.prefix] = k
		case f != nil || g.mu.remote.touched[k.prefix] || now.Sub(peeked[k.prefix]) >= peekEvery:
			ask = append(ask, k)
		}
	}
	clear(g.mu.remote.touched)
	g.mu.Unlock()
	for k := range g.peek(ctx, ask) {
		keep[k.prefix] = k
	}
	for _, k := range ask {
		peeked[k.prefix] = now
	}
	g.mu.Lock()
	var ended []*follower
	for prefix, f := range g.mu.remote.followers {
		if k := keep[prefix]; k == nil || !k.same(f.kind) {
			delete(g.mu.remote.followers, prefix)
			ended = append(ended, f)
		}
	}
	g.mu.Unlock()
	for _, f := range ended {
		f.end()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for prefix, k := range keep {
		if g.mu.remote.followers[prefix] == nil {
			g.mu.remote.followers[prefix] = g.follow(ctx, k)
		}
	}
	if ctx.Err() == nil {
		g.unpark(g.need)
	}
}

// peekers is the number of concurrent polls.
const peekers = 8

// peek returns the kinds that have objects. An unresponsive server counts as empty for now.
func (g *collector) peek(ctx context.Context, kinds []*remoteKind) map[*remoteKind]bool {
	var mu sync.Mutex
	found, places := map[*remoteKind]bool{}, make(chan struct{}, peekers) // one for each poll
	var wg sync.WaitGroup
	for _, k := range kinds {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			ctx, cancel := context.WithTimeout(ctx, peekTimeout)
			defer cancel()
			list, err := g.remotes.client.Resource(k.gvr).List(ctx, metav1.ListOptions{Limit: 1})
			if err == nil && len(list.Items) > 0 {
				mu.Lock()
				defer mu.Unlock()
				found[k] = true
			}
		})
	}
	wg.Wait()
	return found
}

// settle records whether the collector has seen all objects of other servers. stale is true if one could not be
// reached.
func (g *collector) settle(stale bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := &g.mu.remote
	if r.settled {
		return
	}
	for _, f := range r.followers {
		stale = stale || !f.synced
	}
	r.settled = !stale || g.Now().Sub(r.began) >= settleMost
}

// receivedAll returns when to check an owner with waiting dependents again, if the collector cannot know all of them
// yet.
func (g *collector) receivedAll() error {
	if g.Remote == nil {
		return nil
	}
	_, stale := remoteKinds(g.Catalog.Snapshot())
	g.mu.Lock()
	begun := !g.mu.remote.began.IsZero()
	g.mu.Unlock()
	if begun {
		g.settle(stale)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.remote.settled {
		return nil
	}
	return Again(pauseFirst / 10)
}

// remoteState determines the state of an owner on another server.
func (g *collector) remoteState(
	ctx context.Context, namespace string, ref metav1.OwnerReference, s *subject,
) (ownerState, error) {
	k, key := g.remotes.kindOf(ref), ref.Name
	switch {
	case k == nil:
		return dangling, fmt.Errorf("owner %s %s of %s: %w", ref.Kind, ref.Name, ref.APIVersion, errUnknownKind)
	case !k.resource.Namespaced:
		namespace = ""
	case namespace == "":
		return dangling, errNamespacedOwner
	default:
		key = namespace + "/" + ref.Name
	}
	if !k.watched {
		s.unwatched = true
		return g.lookUp(ctx, k, namespace, ref)
	}
	switch f := g.synced(k); {
	case f == nil:
		return dangling, fmt.Errorf("owner %s %s of %s, on a server that has not been discovered yet: %w", ref.Kind, ref.Name,
			ref.APIVersion, errUnknownKind)
	case !f.has(key, string(ref.UID)): // it may be newer than the watch
		return g.lookUp(ctx, k, namespace, ref)
	default:
		if e := f.entry(key); e != nil && waitsForDependents(e) {
			return waiting, nil
		}
		return solid, nil
	}
}

// synced returns the follower of a kind, nil if its objects are not known yet.
func (g *collector) synced(k *remoteKind) *follower {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.remote.wanted[k.prefix] = true
	if f := g.mu.remote.followers[k.prefix]; f != nil {
		if !f.synced {
			return nil
		}
		return f
	}
	g.remotes.look()
	return nil
}

// lookUp requests an owner from another server. After a failed request, requests about the kind pause for a while.
func (g *collector) lookUp(
	ctx context.Context, k *remoteKind, namespace string, ref metav1.OwnerReference,
) (ownerState, error) {
	g.mu.Lock()
	wait := g.mu.remote.paused[k.prefix].until.Sub(g.Now())
	g.mu.Unlock()
	if wait > 0 {
		return dangling, Again(wait)
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	owner, err := g.remotes.client.Resource(k.gvr).Namespace(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	absent := apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil && !absent {
		p := pause{last: min(max(2*g.mu.remote.paused[k.prefix].last, pauseFirst), pauseMost)}
		p.until = g.Now().Add(p.last)
		g.mu.remote.paused[k.prefix] = p
		g.Log.Info("an owner that another server has cannot be looked up; its dependents stay until it can",
			"resource", k.prefix, "namespace", namespace, "name", ref.Name, "error", err, "again", p.last)
		return dangling, Again(p.last)
	}
	delete(g.mu.remote.paused, k.prefix)
	switch {
	case absent || owner.UID != ref.UID:
		return dangling, nil
	case owner.DeletionTimestamp != nil && slices.Contains(owner.Finalizers, metav1.FinalizerDeleteDependents):
		return waiting, nil
	}
	return solid, nil
}
