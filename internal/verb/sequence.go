package verb

import (
	"context"
	"errors"
	"sync"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// sequences makes the writes to a kind whose rules look at its other objects happen one after another.
type sequences struct {
	*Reader
	store *store.Store
	// serial holds a lock per resource whose rules look at other objects of the resource (definitions: their names must
	// not collide), from the read to the moment the view shows the write.
	serial sync.Map // catalog.GroupResource -> *sync.Mutex
}

// needsSequence reports whether writes of the call's kind on other replicas concern it.
func (q *sequences) needsSequence(c *Call) bool {
	return c.Resource.Strategy != nil && c.Resource.Strategy.Serial && q.store.Shared()
}

// lock serialises the writes to a resource whose rules demand it, and returns the function that ends it.
func (q *sequences) lock(c *Call) (unlock func()) {
	if c.Resource.Strategy == nil || !c.Resource.Strategy.Serial {
		return func() {}
	}
	mu, _ := q.serial.LoadOrStore(catalog.GroupResource{Group: c.Resource.Group, Resource: c.Resource.Plural},
		&sync.Mutex{})
	mu.(*sync.Mutex).Lock()
	return mu.(*sync.Mutex).Unlock
}

// refresh gives the call the newest catalog; the caller holds the resource's lock. The lock is this process's. Among
// replicas the write gets a turn: it fails with store.ErrOvertaken if another replica has written what the catalog does
// not show yet.
func (q *sequences) refresh(c *Call) {
	if c.Resource.Strategy == nil || !c.Resource.Strategy.Serial {
		return
	}
	seen := q.view.Revision() // first: the catalog has everything that the view shows
	c.Snapshot = q.catalog.Snapshot()
	if q.needsSequence(c) {
		c.sequence = store.Sequence{Name: c.Resource.Qualified(), Seen: seen}
	}
}

// follow gives the write that admission was asked about the place in the sequence that a validator wants. In a store
// that no other process writes to, the validator's own lock does.
func (q *sequences) follow(c *Call, a *admit.Attributes) {
	if c.Resource.Strategy != nil && c.Resource.Strategy.Serial {
		return // it has its own
	}
	c.sequence = store.Sequence{}
	if s := a.Sequence; s != nil && q.store.Shared() {
		c.sequence = store.Sequence{Name: s.Name, Seen: s.Seen}
	}
}

// commitNew commits a new object in the sequence that a validator wants.
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
