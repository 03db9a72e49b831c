// Package keeper defines the interface to kinds whose objects have another primary store than the log.
//
// The log holds these objects too, in the order in which this server has learned of them, and serves all reads; the
// Keeper holds the authoritative state. The commit and erase functions of package verb write through Keepers. Keepers
// do not change after construction, and are safe for concurrent use.
package keeper

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Keeper is the primary store of a kind.
type Keeper interface {
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

// Keepers are a server's keepers, keyed by the prefixes of their kinds.
type Keepers map[string]Keeper

// Write commits a change of an object in a collection, first in its keeper, if it has one.
func (k Keepers) Write(
	ctx context.Context, in *watchcache.Collection, c Change, commit func() (int64, error),
) (int64, error) {
	keeper := k[in.Prefix()]
	if keeper == nil {
		return commit()
	}
	// If the entry has another revision, Old stays nil and the keeper reports the conflict.
	if e := in.Snapshot().Get(c.Namespace, c.Name); e != nil && e.Revision == c.Revision {
		c.Old = e.JSON()
	}
	return keeper.Write(ctx, c, commit)
}
