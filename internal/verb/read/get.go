package read

import (
	"context"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/call"
)

// Get returns the entry of the named object in the call's version, at least as new as resourceVersion.
func (r *Reader) Get(ctx context.Context, c *call.Call, resourceVersion string) (*watchcache.Entry, error) {
	if c.Resource.Virtual {
		found, err := r.unstored(ctx, c, c.Name)
		if err != nil {
			return nil, err
		}
		return found[0], nil
	}
	if _, err := r.catchUp(ctx, resourceVersion); err != nil {
		return nil, err
	}
	e, err := r.seen(ctx, c)
	if err != nil {
		return nil, err
	}
	return r.InVersion(ctx, c, e)
}
