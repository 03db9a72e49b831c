// Package primary defines the interface to kinds that store their objects outside of the log.
//
// The log holds these objects too, in the order in which this server received them, and serves all reads; the primary
// store holds the authoritative state. The commit and erase functions of package verb write through Stores. Stores do
// not change after construction, and are safe for concurrent use.
package primary

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Store is the primary store of a kind.
type Store interface {
	// Write makes a change in the primary store, and then calls commit, which writes the change to the log. It returns
	// the result of commit, or the reason why the change is impossible.
	Write(ctx context.Context, c Change, commit func() (int64, error)) (int64, error)
}

// Change is the effect of one write on one object.
type Change struct {
	Namespace, Name string
	// Revision is the object's revision in the log, 0 if it is not in the log.
	Revision int64
	// Old and Now are the object before and after, as JSON of the storage version; nil if it does not exist.
	Old, Now []byte
}

// Stores are a server's primary stores, keyed by the prefixes of their kinds.
type Stores map[string]Store

// Write commits a change of an object in a collection, first in the primary store of the kind, if it has one.
func (s Stores) Write(
	ctx context.Context, in *watchcache.Collection, c Change, commit func() (int64, error),
) (int64, error) {
	store := s[in.Prefix()]
	if store == nil {
		return commit()
	}
	// If the entry has another revision, Old stays nil and the store reports the conflict.
	if e := in.Snapshot().Get(c.Namespace, c.Name); e != nil && e.Revision == c.Revision {
		c.Old = e.JSON()
	}
	return store.Write(ctx, c, commit)
}
