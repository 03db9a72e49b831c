package rest

import (
	"sync"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// needsSequence tells whether writes of the call's kind on other replicas concern it.
func (s *Server) needsSequence(c *Call) bool {
	return c.Resource.Strategy != nil && c.Resource.Strategy.Serial && s.Store.Shared()
}

// lock serialises the writes to a resource whose rules demand it, and returns the function that ends it.
func (s *Server) lock(c *Call) (unlock func()) {
	if c.Resource.Strategy == nil || !c.Resource.Strategy.Serial {
		return func() {}
	}
	mu, _ := s.serial.LoadOrStore(catalog.GroupResource{Group: c.Resource.Group, Resource: c.Resource.Plural},
		&sync.Mutex{})
	mu.(*sync.Mutex).Lock()
	return mu.(*sync.Mutex).Unlock
}

// refresh gives the call the newest catalog; the caller holds the resource's lock. The lock is this process's. Among
// replicas the write gets a turn: it fails with store.ErrOvertaken if another replica has written what the catalog does
// not show yet.
func (s *Server) refresh(c *Call) {
	if c.Resource.Strategy == nil || !c.Resource.Strategy.Serial {
		return
	}
	seen := s.View.Revision() // first: the catalog has everything that the view shows
	c.Snapshot = s.Catalog.Snapshot()
	if s.needsSequence(c) {
		c.sequence = store.Sequence{Name: c.Resource.Qualified(), Seen: seen}
	}
}
