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
	// GroupPriority orders the group according to this version; Priority orders the versions of a group.
	GroupPriority, Priority int
	// Remote is set if another server serves the version. Resources is then empty. Shadowed, usually empty, lists the
	// resources that this server would serve otherwise.
	Remote   *Remote
	Shadowed []*Resource // see Remote
}

// GroupVersionName names a version of a group.
type GroupVersionName struct{ Group, Version string }

// Service assigns a version of a group to a server, and sets its position in lists, if these do not follow from this
// server's own resources.
type Service struct {
	GroupVersionName
	GroupPriority, Priority int     // see GroupVersion
	Remote                  *Remote // nil if this server serves the version
}

// Remote describes a version that another server serves.
type Remote struct {
	// Key stays equal as long as the other server's documents are equal.
	Key any
	// Resources is the other server's most recent list of resources, in its order.
	Resources []apidiscoveryv2.APIResourceDiscovery
	// Stale is true if later requests for the list have failed.
	Stale bool
	// V3 and V2 are its OpenAPI documents.
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

// Remote returns the Remote of a version that another server serves, otherwise nil.
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
	// Read returns the document as JSON; nil if there is none.
	Read func() ([]byte, error)
}

// SetServices publishes a snapshot with exactly these services. The services must not change afterwards. A service with
// the same pointer as before leaves its group unchanged.
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

// ServicesChanged returns a channel that is closed when SetServices next publishes a change.
func (c *Catalog) ServicesChanged() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.changed
}

// arrange derives Versions and Priority from the resources and the services.
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
