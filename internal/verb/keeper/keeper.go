// Package keeper says what it takes to keep the objects of a kind somewhere else than in the log.
//
// The log has them too, in the order in which this server has learned of them, and everything that is read comes from
// there; what a Keeper has is the truth about them. The one commit and the one erase of package verb write through
// Keepers. Keepers are read only once made, and safe for concurrent use.
package keeper

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Keeper keeps the objects of a kind.
type Keeper interface {
	// Write makes a change where the objects are kept, and then calls commit, which writes it to the log. It returns
	// what commit does, or why the change cannot be made.
	Write(ctx context.Context, c Change, commit func() (int64, error)) (int64, error)
}

// Change is what a write does to one object.
type Change struct {
	Namespace, Name string
	// Revision is that of the object in the log, 0 if there is none.
	Revision int64
	// Old and Now are the object before and after, JSON of the storage version; nil if there is none.
	Old, Now []byte
}

// Keepers are those of a server, by the prefixes of their kinds.
type Keepers map[string]Keeper

// Write commits a change of an object of a collection, first where it is kept.
func (k Keepers) Write(
	ctx context.Context, in *watchcache.Collection, c Change, commit func() (int64, error),
) (int64, error) {
	keeper := k[in.Prefix()]
	if keeper == nil {
		return commit()
	}
	// An entry of another revision is a conflict, which the keeper finds.
	if e := in.Snapshot().Get(c.Namespace, c.Name); e != nil && e.Revision == c.Revision {
		c.Old = e.JSON()
	}
	return keeper.Write(ctx, c, commit)
}
