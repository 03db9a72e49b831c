package rest

import (
	"slices"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Served looks up facts about a request's resource in the catalog, before the request is handled.
type Served struct{ Catalog *catalog.Catalog }

// Has reports whether a resource request names an existing resource.
func (s Served) Has(info *request.Info) bool {
	snap := s.Catalog.Snapshot()
	r, v := snap.Served(info.Group, info.Version, info.Resource)
	if remote := snap.Remote(info.Group, info.Version); remote != nil {
		return remote.Has(info.Resource, info.Subresource)
	}
	return r != nil &&
		(info.Subresource == "" || info.Subresource == "scale" && v.Scale != nil ||
			r.HasSubresource(v, info.Subresource) || r.Subresource(info.Subresource) != nil)
}

// LongRunning reports whether a request is for a subresource without a time limit. For resources of other servers it
// goes by Kubernetes' names of such subresources.
func (s Served) LongRunning(info *request.Info) bool {
	snap := s.Catalog.Snapshot()
	if snap.Remote(info.Group, info.Version) != nil {
		return connects(info.Subresource)
	}
	r, _ := snap.Served(info.Group, info.Version, info.Resource)
	if r == nil { // another server may serve the resource
		return connects(info.Subresource)
	}
	sub := r.Subresource(info.Subresource)
	return sub != nil && sub.LongRunning
}

// connects reports whether a subresource has the name of a long-running subresource in Kubernetes.
func connects(subresource string) bool {
	return slices.Contains([]string{"attach", "exec", "proxy", "log", "portforward"}, subresource)
}

// Unseen reports whether a write stores nothing and so causes no watch event, such as a review or the creation of a
// token.
func (s Served) Unseen(info *request.Info) bool {
	r, _ := s.Catalog.Snapshot().Served(info.Group, info.Version, info.Resource)
	if r == nil || info.Subresource == "" {
		return r == nil || r.Virtual
	}
	sub := r.Subresource(info.Subresource)
	return sub != nil && sub.Virtual != nil
}
