package control

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// graph maps owners, by uid, to the objects that refer to them. Objects without owners and without dependents are not
// in it: it takes about 80 bytes for each reference, and nothing for the rest of the store.
//
// The view's goroutine changes it, workers read it; the collector's lock guards it. The view shows whether an owner
// exists; the graph only records deleted owners, which the view cannot show for a kind that is no longer served.
type graph struct {
	owners map[string]*owner // by uid
	// waiting holds the places of objects with a deletion that waits for dependents (foregroundDeletion), by uid.
	waiting map[string]location
}

func newGraph() graph { return graph{owners: map[string]*owner{}, waiting: map[string]location{}} }

// owner is an object as its dependents see it.
type owner struct {
	dependents edges
	// gone is true once its deletion was seen. Then its dependents have lost it, even if its kind is no longer served.
	gone bool
}

// location is where an object lives.
type location struct {
	home home
	key  string // "namespace/name" or "name"
}

// home is a *watchcache.Collection, or a *follower for another server's objects.
type home interface{ Prefix() string }

var _, _ home = (*watchcache.Collection)(nil), (*follower)(nil)

// String returns the location as a key of the collector's queue: "stable.example.com/crontabs default/a".
func (p location) String() string { return p.home.Prefix() + " " + p.key }

// entry returns the object at the place, nil if there is none. For other servers it returns only objects with owners or
// a deletion timestamp.
func (p location) entry() *watchcache.Entry {
	switch h := p.home.(type) {
	case *follower:
		return h.entry(p.key)
	case *watchcache.Collection:
		namespace, name, namespaced := strings.Cut(p.key, "/")
		if !namespaced {
			namespace, name = "", p.key
		}
		return h.Snapshot().Get(namespace, name)
	}
	return nil
}

// set replaces the references of the object at p, from was to is. It calls unblocked with the place of each owner with
// a deletion that may have waited for a removed reference.
func (g *graph) set(p location, was, is []metav1.OwnerReference, unblocked func(location)) {
	now := map[string]bool{} // uid -> blocks
	for _, ref := range is {
		now[string(ref.UID)] = now[string(ref.UID)] || blocks(ref)
	}
	for _, ref := range was {
		uid := string(ref.UID)
		o := g.owners[uid]
		if o == nil {
			continue // a second reference to the same owner
		}
		block, stays := now[uid]
		if !stays {
			o.dependents.remove(p)
		}
		if at, ok := g.waiting[uid]; ok && (!stays || blocks(ref) && !block) {
			unblocked(at)
		}
		if !stays && o.dependents.len() == 0 {
			delete(g.owners, uid)
		}
	}
	for uid, block := range now {
		o := g.owners[uid]
		if o == nil {
			o = &owner{}
			g.owners[strings.Clone(uid)] = o
		}
		o.dependents.put(p, block)
	}
}

// lose notes that an object was deleted. It reports whether anything depended on it.
func (g *graph) lose(uid string) bool {
	delete(g.waiting, uid)
	o := g.owners[uid]
	if o == nil {
		return false
	}
	o.gone = true
	return true
}

// wait notes whether the deletion of an object waits for its dependents.
func (g *graph) wait(uid string, at location, waits bool) {
	if waits {
		g.waiting[uid] = at
	} else {
		delete(g.waiting, uid)
	}
}

func (g *graph) gone(uid string) bool {
	o := g.owners[uid]
	return o != nil && o.gone
}

// dependents returns the places of an owner's dependents, in no particular order.
func (g *graph) dependents(uid string) (all, blocking []location) {
	o := g.owners[uid]
	if o == nil {
		return nil, nil
	}
	all = make([]location, 0, o.dependents.len())
	o.dependents.each(func(p location, block bool) {
		all = append(all, p)
		if block {
			blocking = append(blocking, p)
		}
	})
	return all, blocking
}

func blocks(ref metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}

// edges is a set of places with a flag for each: a list while it is short, like nearly all, else a map.
type edges struct {
	few  []edge
	many map[location]bool
}

type edge struct {
	to    location
	block bool
}

// fewEdges is where a search of the list begins to cost more than a map.
const fewEdges = 16

func (s *edges) len() int { return len(s.few) + len(s.many) }

func (s *edges) put(to location, block bool) {
	if s.many != nil {
		s.many[to] = block
		return
	}
	for i := range s.few {
		if s.few[i].to == to {
			s.few[i].block = block
			return
		}
	}
	if len(s.few) < fewEdges {
		s.few = append(s.few, edge{to, block})
		return
	}
	s.many = make(map[location]bool, 2*fewEdges)
	for _, e := range s.few {
		s.many[e.to] = e.block
	}
	s.many[to], s.few = block, nil
}

func (s *edges) remove(to location) {
	delete(s.many, to)
	for i := range s.few {
		if s.few[i].to == to {
			last := len(s.few) - 1
			s.few[i], s.few[last] = s.few[last], edge{}
			s.few = s.few[:last]
			return
		}
	}
}

func (s *edges) each(f func(location, bool)) {
	for _, e := range s.few {
		f(e.to, e.block)
	}
	for to, block := range s.many {
		f(to, block)
	}
}
