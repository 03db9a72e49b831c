package verb

import (
	"sync"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// sequences serializes writes to kinds with rules across objects.
type sequences struct {
	store *store.Store
	// serial holds a lock for each resource with rules across its objects (definitions: their names must not collide).
	// A write holds the lock from its read until the view shows the write.
	serial sync.Map // catalog.GroupResource -> *sync.Mutex
}

// needed reports whether writes on other replicas affect the rules of the call's kind.
func (q *sequences) needed(c *Call) bool {
	return c.Resource.Strategy != nil && c.Resource.Strategy.Serial && q.store.Shared()
}

// lock serializes writes to a resource with Strategy.Serial and returns the function that unlocks it.
func (q *sequences) lock(c *Call) (unlock func()) {
	if c.Resource.Strategy == nil || !c.Resource.Strategy.Serial {
		return func() {}
	}
	mu, _ := q.serial.LoadOrStore(catalog.GroupResource{Group: c.Resource.Group, Resource: c.Resource.Plural},
		&sync.Mutex{})
	mu.(*sync.Mutex).Lock()
	return mu.(*sync.Mutex).Unlock
}

// refresh gives a write to a resource with Strategy.Serial the newest catalog. The caller holds the resource's lock,
// which covers only this process. Between replicas the sequence orders the writes: a write fails with
// store.ErrOvertaken if another replica has written something that this catalog does not show yet.
func (w *write) refresh() {
	if w.call.Resource.Strategy == nil || !w.call.Resource.Strategy.Serial {
		return
	}
	seen := w.View().Revision() // first: the catalog is at least as new as the view
	w.call = w.call.At(w.Catalog().Snapshot())
	if w.sequences.needed(w.call) {
		w.sequence = store.Sequence{Name: w.call.Resource.Qualified(), Seen: seen}
	}
}

// follow puts a write into the sequence that a validating plugin requires (Attributes.Sequence). If no other process
// writes to the store, the plugin's own lock suffices.
func (w *write) follow() {
	if w.call.Resource.Strategy != nil && w.call.Resource.Strategy.Serial {
		return // the kind has its own sequence
	}
	w.sequence = store.Sequence{}
	if s := w.attributes.Sequence; s != nil && w.store.Shared() {
		w.sequence = store.Sequence{Name: s.Name, Seen: s.Seen}
	}
}
