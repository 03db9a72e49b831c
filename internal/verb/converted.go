package verb

import (
	"context"

	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Objects of kinds with a conversion webhook are shown in another version than the stored one only after the webhook
// was asked, and what it answers decides what selectors find: it may change labels, and fields lie where the version
// has them. So lists and watches of such kinds look at many objects at a time, which share a call.

// convertedWindow is how many objects are brought into the asked version together.
const convertedWindow = 1000

// listConverted fills p as list does.
func (r *Reader) listConverted(
	ctx context.Context, c *Call, o *metainternal.ListOptions, sel *selector, start listStart, p *Page,
) error {
	var failure error
	more := false
	take := func(window []*watchcache.Entry) bool {
		if window, failure = r.allInVersion(ctx, c, window); failure != nil {
			return false
		}
		for _, e := range window {
			switch {
			case !sel.matches(e):
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
	if sel.all() && o.Limit > 0 {
		size = min(size, int(min(o.Limit, convertedWindow)))
	}
	windows(start.snapshot, c.Namespace, start.after, size, sel.mayMatch, take)
	if more && failure == nil {
		r.toBeContinued(c, p, start, sel)
	}
	return failure
}

// windows calls f with the entries of a snapshot that keep wants, size at a time, until f returns false.
func windows(
	snapshot *watchcache.Snapshot, namespace, after string, size int, keep func(*watchcache.Entry) bool,
	f func([]*watchcache.Entry) bool,
) {
	window := make([]*watchcache.Entry, 0, size)
	ok := true
	snapshot.Scan(namespace, after, func(e *watchcache.Entry) bool {
		if !keep(e) {
			return true
		}
		if window = append(window, e); len(window) == size {
			ok = f(window)
			window = window[:0]
		}
		return ok
	})
	if ok && len(window) > 0 {
		f(window)
	}
}

// mayMatch reports whether an entry that has not been converted can match: names are the same in all versions.
func (sel *selector) mayMatch(e *watchcache.Entry) bool {
	for _, req := range sel.fields {
		if req.Field != "metadata.name" && req.Field != "metadata.namespace" {
			continue
		}
		equal := sel.field(e, req.Field) == req.Value
		if negated := req.Operator == "!="; equal == negated {
			return false
		}
	}
	return true
}
