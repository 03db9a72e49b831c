package decode

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/charge"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// smallEntry is the size, in bytes, of a stored object that no request is charged for.
const smallEntry = 16 << 10

// Hold charges the request that ctx belongs to for a stored object that it is about to decode and change.
func Hold(ctx context.Context, e *watchcache.Entry) error {
	if e.Size() <= smallEntry {
		return nil
	}
	return request.Hold(ctx, charge.JSON(e.JSON()))
}
