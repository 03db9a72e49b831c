package read

import (
	"context"

	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/call"
	"github.com/bowsprit/bowsprit/internal/verb/selector"
)

// For kinds with a conversion webhook, selectors see the webhook's result: the webhook may change labels, and fields
// lie elsewhere in each version. So lists and watches of such kinds convert many objects in one call.

// convertedWindow is the number of objects converted in one call.
const convertedWindow = 1000

// listConverted finishes List for a kind with a conversion webhook.
func (r *Reader) listConverted(
	ctx context.Context, c *call.Call, o *metainternal.ListOptions, sel *selector.Selector, start listStart,
) (*Page, error) {
	p := &Page{Call: c, Revision: start.snapshot.Revision, Shard: sel.Shard.String()}
	var failure error
	more := false
	take := func(window []*watchcache.Entry) bool {
		if window, failure = r.AllInVersion(ctx, c, window); failure != nil {
			return false
		}
		for _, e := range window {
			switch {
			case !sel.Matches(e):
			case o.Limit > 0 && int64(len(p.Entries)) == o.Limit:
				more = true
				return false
			default:
				p.Entries = append(p.Entries, e)
			}
		}
		return true
	}
	size := convertedWindow
	if sel.All() && o.Limit > 0 {
		size = min(size, int(min(o.Limit, convertedWindow)))
	}
	sel.Windows(start.snapshot, start.after, size, take)
	if more && failure == nil {
		r.toBeContinued(c, p, start, sel)
	}
	return p, failure
}
