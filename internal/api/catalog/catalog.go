// Package catalog holds the groups, versions and resources that the server currently serves.
//
// Built-in kinds (package kinds) and custom kinds (package crd) both become a Resource, the one type for all later
// steps of a request. A request takes one Snapshot at its start and keeps it to its end, so a concurrent change of a
// definition cannot mix old and new parts in one response.
//
// Snapshots, groups, resources and versions are immutable once published and safe for concurrent use. A Catalog has one
// writer at a time; readers never wait.
package catalog

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Catalog publishes snapshots.
type Catalog struct {
	mu       sync.Mutex // serializes writers; readers use cur
	services map[GroupVersionName]*Service
	changed  chan struct{} // closed at the next change of services; nil if no caller waits
	cur      atomic.Pointer[Snapshot]
}

// New returns a catalog that serves the given resources.
func New(resources ...*Resource) *Catalog {
	c := &Catalog{}
	c.cur.Store(&Snapshot{groups: map[string]*Group{}, byPrefix: map[string]*Resource{}})
	c.Update(0, resources, nil)
	return c
}

// Snapshot returns the current snapshot.
func (c *Catalog) Snapshot() *Snapshot { return c.cur.Load() }

// Update publishes a snapshot with the resources of put, which replace existing ones of the same group and plural, and
// without the resources in remove. revision is the etcd revision of the change. Unaffected groups keep their Stamp.
//
// Cost: the affected groups, and one pointer for each group of the catalog.
func (c *Catalog) Update(revision int64, put []*Resource, remove []GroupResource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.draftLocked()
	next.Revision = max(next.Revision, revision)
	var retired []*Resource
	for _, gr := range remove {
		g := next.open(gr.Group)
		if r := g.resources[gr.Resource]; r != nil {
			if !r.Secondary && !r.Virtual {
				delete(next.byPrefix, r.Prefix)
			}
			delete(g.resources, gr.Resource)
			retired = append(retired, r)
		}
	}
	for _, r := range put {
		g := next.open(r.Group)
		if was := g.resources[r.Plural]; was != nil {
			retired = append(retired, was)
		}
		r.life, r.retire = context.WithCancel(context.Background())
		g.resources[r.Plural] = r
		if !r.Secondary && !r.Virtual {
			next.byPrefix[r.Prefix] = r
		}
	}
	c.publishLocked(next)
	for _, r := range retired {
		r.retire()
	}
}

// draft is the next snapshot under construction.
type draft struct {
	*Snapshot
	old     *Snapshot
	changed map[string]*Group
}

// draftLocked starts the next snapshot as a copy of the current one.
func (c *Catalog) draftLocked() *draft {
	old := c.cur.Load()
	return &draft{old: old, changed: map[string]*Group{}, Snapshot: &Snapshot{
		Revision: old.Revision, Stamp: old.Stamp + 1, groups: maps.Clone(old.groups),
		byPrefix: maps.Clone(old.byPrefix), remotes: old.remotes,
	}}
}

// open returns the named group of the draft for modification.
func (d *draft) open(name string) *Group {
	g := d.changed[name]
	if g == nil {
		g = &Group{Name: name, Stamp: d.Stamp, resources: map[string]*Resource{}}
		if was := d.old.groups[name]; was != nil {
			g.resources = maps.Clone(was.resources)
		}
		d.changed[name] = g
	}
	return g
}

// publishLocked publishes d.
func (c *Catalog) publishLocked(d *draft) {
	for name, g := range d.changed {
		g.arrange(c.services)
		if len(g.resources) == 0 && len(g.Versions) == 0 {
			delete(d.groups, name)
		} else {
			d.groups[name] = g
		}
	}
	c.cur.Store(d.Snapshot)
}

// GroupResource names a resource without a version.
type GroupResource struct{ Group, Resource string }

// Snapshot is the catalog at one moment.
type Snapshot struct {
	// Revision is the etcd revision of the newest definition in the snapshot; 0 with built-in kinds only.
	Revision int64
	// Stamp grows with each change; snapshots with equal stamps are equal.
	Stamp uint64

	groups   map[string]*Group
	byPrefix map[string]*Resource
	remotes  bool // some versions are served by other servers
}

// Group returns the named group ("" is the core group), or nil.
func (s *Snapshot) Group(name string) *Group { return s.groups[name] }

// Groups returns all groups that serve something, as discovery lists them: descending priority, then by name.
func (s *Snapshot) Groups() []*Group {
	out := make([]*Group, 0, len(s.groups))
	for _, g := range s.groups {
		if len(g.Versions) > 0 {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b *Group) int {
		if a.Priority != b.Priority {
			return b.Priority - a.Priority
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

// Served returns the served resource and version of group/version/plural, or nil, nil.
func (s *Snapshot) Served(group, version, plural string) (*Resource, *Version) {
	r := s.Resource(group, plural)
	if r == nil || !r.Served {
		return nil, nil
	}
	v := r.Version(version)
	if v == nil || !v.Served {
		return nil, nil
	}
	return r, v
}

// Resource returns the resource with that plural name, served or not, or nil.
func (s *Snapshot) Resource(group, plural string) *Resource {
	g := s.groups[group]
	if g == nil {
		return nil
	}
	return g.resources[plural]
}

// ByKind returns the resource of a kind, preferably a served one, or nil.
func (s *Snapshot) ByKind(group, kind string) *Resource {
	g := s.groups[group]
	if g == nil {
		return nil
	}
	var found *Resource
	for _, r := range g.resources {
		if r.Kind == kind && (found == nil || r.Served) {
			found = r
		}
	}
	return found
}

// ByPrefix returns the resource with objects stored under prefix, or nil. It is never an alias.
func (s *Snapshot) ByPrefix(prefix string) *Resource { return s.byPrefix[prefix] }

// Resources calls f for every resource, in no particular order.
func (s *Snapshot) Resources(f func(*Resource)) {
	for _, g := range s.groups {
		for _, r := range g.resources {
			f(r)
		}
	}
}

// Group is an API group with the versions it serves.
type Group struct {
	Name string
	// Priority orders groups in discovery, as an APIService's groupPriorityMinimum does: the largest of its resources.
	Priority int
	// Versions that serve at least one resource, the preferred one first.
	Versions []*GroupVersion
	// Stamp is the snapshot's stamp at the group's last change: the cache key and ETag source of its documents.
	Stamp uint64

	resources map[string]*Resource
}

// Version returns the named version, or nil.
func (g *Group) Version(name string) *GroupVersion {
	for _, v := range g.Versions {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// Each calls f for every resource of the group, served or not, in no particular order.
func (g *Group) Each(f func(*Resource)) {
	for _, r := range g.resources {
		f(r)
	}
}
