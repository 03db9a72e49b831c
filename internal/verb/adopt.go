package verb

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Adopt copies the state of the call's object from its primary store to the log: obj, an object of the storage version,
// replaces entry e. obj is nil if the object is gone, and e if the log does not have it. Adopt writes nothing if the
// log is up to date. It returns the errors of the store: store.ErrConflict, store.ErrExists or store.ErrNotFound if the
// log has changed since e.
func (v *Verbs) Adopt(ctx context.Context, c *Call, e *watchcache.Entry, obj object.Object) error {
	if obj == nil {
		if e == nil {
			return nil
		}
		_, err := v.store.Delete(ctx, c.Key(c.Name), e.Revision)
		return err
	}
	stored := codec.EncodeStored(obj)
	if e != nil && stored.Is(e.JSON(), e.Revision) {
		return nil
	}
	return v.overwrite(ctx, c, e, stored)
}
