package rest

import (
	"slices"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Served says of requests what the catalog knows of their resources, before they are handled.
type Served struct{ Catalog *catalog.Catalog }

// Has reports whether a resource request names something that exists.
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

// LongRunning reports whether a request is for a subresource whose requests last as long as their clients want. Of what
// other servers have, those are that are called as Kubernetes' own.
func (s Served) LongRunning(info *request.Info) bool {
	snap := s.Catalog.Snapshot()
	if snap.Remote(info.Group, info.Version) != nil {
		return connects(info.Subresource)
	}
	r, _ := snap.Served(info.Group, info.Version, info.Resource)
	if r == nil { // another server may serve it
		return connects(info.Subresource)
	}
	sub := r.Subresource(info.Subresource)
	return sub != nil && sub.LongRunning
}

// connects reports whether a subresource is called as those of Kubernetes whose requests last.
func connects(subresource string) bool {
	return slices.Contains([]string{"attach", "exec", "proxy", "log", "portforward"}, subresource)
}

// Unseen reports whether a write stores nothing: no watch hears of a review, or of a token that is made.
func (s Served) Unseen(info *request.Info) bool {
	r, _ := s.Catalog.Snapshot().Served(info.Group, info.Version, info.Resource)
	if r == nil || info.Subresource == "" {
		return r == nil || r.Virtual
	}
	sub := r.Subresource(info.Subresource)
	return sub != nil && sub.Virtual != nil
}
