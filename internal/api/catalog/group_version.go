package catalog

import (
	"maps"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/version"
)

// GroupVersion is one served version of a group.
type GroupVersion struct {
	Name      string
	Resources []*Resource // served in this version, sorted by plural
	// GroupPriority orders the group, as far as this version is concerned; Priority orders the versions of a group.
	GroupPriority, Priority int
	// Remote is set if another server answers for the version. Resources are then empty, and Shadowed are those that
	// this server would answer for if it did not, usually none.
	Remote   *Remote
	Shadowed []*Resource // see Remote
}

// GroupVersionName names a version of a group.
type GroupVersionName struct{ Group, Version string }

// Service says who answers for a version of a group, and in which order it is listed, where that does not follow from
// the resources that this server has.
type Service struct {
	GroupVersionName
	GroupPriority, Priority int     // see GroupVersion
	Remote                  *Remote // nil if this server answers
}

// Remote is what is known of a version for which another server answers.
type Remote struct {
	// Key is the same as long as what the other server has said is the same.
	Key any
	// Resources are those that the other server has listed when it was last asked, in its order.
	Resources []apidiscoveryv2.APIResourceDiscovery
	// Stale is true if it could not be asked since.
	Stale bool
	// V3 and V2 are its documents.
	V3, V2 Document
}

// Has reports whether the other server has listed a resource with that subresource, "" for none.
func (r *Remote) Has(resource, subresource string) bool {
	i := slices.IndexFunc(r.Resources, func(one apidiscoveryv2.APIResourceDiscovery) bool {
		return one.Resource == resource
	})
	return i >= 0 && (subresource == "" || slices.ContainsFunc(r.Resources[i].Subresources,
		func(one apidiscoveryv2.APISubresourceDiscovery) bool { return one.Subresource == subresource }))
}

// Remote returns what is known of a version for which another server answers, nil of all others.
func (s *Snapshot) Remote(group, version string) *Remote {
	if !s.remotes {
		return nil
	}
	g := s.groups[group]
	if g == nil {
		return nil
	}
	if gv := g.Version(version); gv != nil {
		return gv.Remote
	}
	return nil
}

// Document is an OpenAPI document that another server has published.
type Document struct {
	Hash string // "" if there is none
	// Read returns it as JSON; nil if there is none.
	Read func() ([]byte, error)
}

// SetServices publishes a snapshot in which these and no others say who answers for versions of groups. They are not
// changed afterwards. A service that is the same pointer as before leaves its group as it is.
func (c *Catalog) SetServices(services []*Service) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := make(map[GroupVersionName]*Service, len(services))
	for _, s := range services {
		next[s.GroupVersionName] = s
	}
	d := c.draftLocked()
	for _, s := range services {
		if c.services[s.GroupVersionName] != s {
			d.open(s.Group)
		}
	}
	for name := range c.services {
		if next[name] == nil {
			d.open(name.Group)
		}
	}
	c.services = next
	d.remotes = slices.ContainsFunc(services, func(s *Service) bool { return s.Remote != nil })
	if len(d.changed) == 0 {
		return
	}
	c.publishLocked(d)
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// ServicesChanged returns a channel that is closed when SetServices publishes something else the next time.
func (c *Catalog) ServicesChanged() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.changed
}

// arrange derives Versions and Priority from the resources, and from what services say.
func (g *Group) arrange(services map[GroupVersionName]*Service) {
	versions := map[string]*GroupVersion{}
	open := func(name string) *GroupVersion {
		gv := versions[name]
		if gv == nil {
			gv = &GroupVersion{Name: name}
			versions[name] = gv
		}
		return gv
	}
	for _, plural := range slices.Sorted(maps.Keys(g.resources)) {
		r := g.resources[plural]
		if !r.Served {
			continue
		}
		for _, v := range r.Versions {
			if !v.Served {
				continue
			}
			gv := open(v.Name)
			gv.GroupPriority = max(gv.GroupPriority, r.priority())
			gv.Priority = max(gv.Priority, r.versionPriority(v))
			gv.Resources = append(gv.Resources, r)
		}
	}
	for name, s := range services {
		if name.Group != g.Name || s.Remote == nil && versions[name.Version] == nil {
			continue
		}
		gv := open(name.Version)
		gv.GroupPriority, gv.Priority, gv.Remote = s.GroupPriority, s.Priority, s.Remote
		if gv.Remote != nil {
			gv.Resources, gv.Shadowed = nil, gv.Resources
		}
	}
	g.Priority = 0
	for _, gv := range versions {
		g.Priority = max(g.Priority, gv.GroupPriority)
	}
	g.Versions = slices.SortedFunc(maps.Values(versions), func(a, b *GroupVersion) int {
		if a.Priority != b.Priority {
			return b.Priority - a.Priority
		}
		return version.CompareKubeAwareVersionStrings(b.Name, a.Name)
	})
}
