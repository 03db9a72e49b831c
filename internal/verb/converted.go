package verb

import (
	"context"

	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/selector"
)

// Objects of kinds with a conversion webhook are shown in another version than the stored one only after the webhook
// was asked, and what it answers decides what selectors find: it may change labels, and fields lie where the version
// has them. So lists and watches of such kinds look at many objects at a time, which share a call.

// convertedWindow is how many objects are brought into the asked version together.
const convertedWindow = 1000

// listConverted is the rest of List.
func (r *Reader) listConverted(
	ctx context.Context, c *Call, o *metainternal.ListOptions, sel *selector.Selector, start listStart,
) (*Page, error) {
	p := &Page{Revision: start.snapshot.Revision, Shard: sel.Shard.String()}
	var failure error
	more := false
	take := func(window []*watchcache.Entry) bool {
		if window, failure = r.allInVersion(ctx, c, window); failure != nil {
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
