package verb

import (
	"context"
	"errors"
	"sync"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// sequences serializes writes to kinds with rules across objects.
type sequences struct {
	*Reader
	store *store.Store
	// serial holds a lock for each resource with rules across its objects (definitions: their names must not collide).
	// A write holds the lock from its read until the view shows the write.
	serial sync.Map // catalog.GroupResource -> *sync.Mutex
}

// needsSequence reports whether writes on other replicas affect the rules of the call's kind.
func (q *sequences) needsSequence(c *Call) bool {
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

// refresh gives the call the newest catalog. The caller holds the resource's lock, which covers only this process.
// Between replicas the sequence orders the writes: a write fails with store.ErrOvertaken if another replica has written
// something that this catalog does not show yet.
func (q *sequences) refresh(c *Call) {
	if c.Resource.Strategy == nil || !c.Resource.Strategy.Serial {
		return
	}
	seen := q.view.Revision() // first: the catalog is at least as new as the view
	c.Snapshot = q.catalog.Snapshot()
	if q.needsSequence(c) {
		c.sequence = store.Sequence{Name: c.Resource.Qualified(), Seen: seen}
	}
}

// follow puts a write into the sequence that a validating plugin requires (Attributes.Sequence). If no other process
// writes to the store, the plugin's own lock suffices.
func (q *sequences) follow(c *Call, a *admit.Attributes) {
	if c.Resource.Strategy != nil && c.Resource.Strategy.Serial {
		return // the kind has its own sequence
	}
	c.sequence = store.Sequence{}
	if s := a.Sequence; s != nil && q.store.Shared() {
		c.sequence = store.Sequence{Name: s.Name, Seen: s.Seen}
	}
}

// commitNew commits a new object in the sequence that a validating plugin requires.
func (v *Verbs) commitNew(ctx context.Context, c *Call, a *admit.Attributes, ch change) (*Result, error) {
	for {
		v.sequences.follow(c, a)
		made, err := v.writer.commit(ctx, c, ch)
		if a.Sequence == nil || !errors.Is(err, store.ErrOvertaken) {
			return made, err
		}
		if a.Sequence.Seen, err = a.Sequence.Again(ctx); err != nil {
			return nil, err
		}
	}
}
