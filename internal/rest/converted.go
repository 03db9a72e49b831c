package rest

import (
	"context"

	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Objects of kinds with a conversion webhook are shown in another version than the stored one only after the webhook
// was asked, and what it answers decides what selectors find: it may change labels, and fields lie where the version
// has them. So lists and watches of such kinds look at many objects at a time, which share a call.

// foreignWindow is how many objects are brought into the asked version together.
const foreignWindow = 1000

// listConverted fills p as list does.
func (s *Server) listConverted(
	ctx context.Context, c *Call, o *metainternal.ListOptions, sel *selector, start listStart, p *page,
) error {
	var failure error
	more := false
	take := func(window []*watchcache.Entry) bool {
		if window, failure = s.allInVersion(ctx, c, window); failure != nil {
			return false
		}
		for _, e := range window {
			switch {
			case !sel.matches(e):
			case o.Limit > 0 && int64(len(p.entries)) == o.Limit:
				more = true
				return false
			default:
				p.entries = append(p.entries, e)
			}
		}
		return true
	}
	size := foreignWindow
	if sel.all() && o.Limit > 0 {
		size = min(size, int(min(o.Limit, foreignWindow)))
	}
	windows(start.snapshot, c.Namespace, start.after, size, sel.mayMatch, take)
	if more && failure == nil {
		s.toBeContinued(c, p, start, sel)
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

// mayMatch tells whether an entry that has not been converted can match: names are the same in all versions.
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

// initialForeign is initial for kinds with a conversion webhook: what has been converted is sent while the rest is
// asked for.
func (st *stream) initialForeign(
	ctx context.Context, snapshot *watchcache.Snapshot, send func(*watchcache.Entry) bool,
) bool {
	ok := true
	windows(snapshot, st.c.Namespace, "", foreignWindow, st.sel.mayMatch, func(window []*watchcache.Entry) bool {
		converted, err := st.s.allInVersion(ctx, st.c, window)
		if err != nil {
			st.fail(err)
			ok = false
			return false
		}
		for _, e := range converted {
			if ok = !st.sel.matches(e) || send(e); !ok {
				return false
			}
		}
		return st.out.push()
	})
	return ok
}

// change is an event as a watch shows it: the object after and before it, in the watch's version. For kinds without a
// webhook these are the event's own entries.
type change struct {
	*watchcache.Event
	entry, prev *watchcache.Entry
}

// changes brings events into the watch's version, all in one go. A deletion shows the object's last state, which needs
// no call if that has been shown before. The slice is valid until the next call.
func (st *stream) changes(ctx context.Context, events []*watchcache.Event) ([]change, error) {
	out := st.window[:0]
	defer func() { st.window = out }()
	if !st.s.Convert.NeedsWebhook(st.c.Resource) {
		for _, ev := range events {
			out = append(out, change{ev, ev.Entry, ev.Prev})
		}
		return out, nil
	}
	var entries []*watchcache.Entry
	for _, ev := range events {
		if st.c.Namespace != "" && ev.Entry.Namespace != st.c.Namespace || !st.sel.mayMatch(ev.Entry) {
			continue
		}
		one := change{ev, ev.Entry, ev.Prev}
		if ev.Type == watchcache.Deleted && ev.Prev != nil {
			one.entry = nil
		}
		if st.sel.all() && one.entry != nil {
			one.prev = nil // nobody looks at it
		}
		out, entries = append(out, one), append(entries, one.entry, one.prev)
	}
	entries, err := st.s.allInVersion(ctx, st.c, entries)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].entry, out[i].prev = entries[2*i], entries[2*i+1]; out[i].entry == nil {
			out[i].entry = out[i].prev.At(out[i].Revision)
		}
	}
	return out, nil
}
