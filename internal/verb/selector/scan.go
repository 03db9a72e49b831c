package selector

import "github.com/bowsprit/bowsprit/internal/storage/watchcache"

// Snapshot returns the newest state of the collection, with the selector's index if there is one.
func (sel *Selector) Snapshot(collection *watchcache.Collection) *watchcache.Snapshot {
	if ix, _, ok := sel.Index(); ok {
		return collection.SnapshotBy(ix)
	}
	return collection.Snapshot()
}

// Scan calls f for each candidate entry behind the key after, in order, until f returns false. The caller must still
// match the entries.
func (sel *Selector) Scan(snapshot *watchcache.Snapshot, after string, f func(*watchcache.Entry) bool) {
	if ix, value, ok := sel.Index(); ok && snapshot.Find(ix.Name, value, sel.Namespace, after, f) {
		return
	}
	snapshot.Scan(sel.Namespace, after, f)
}

// Windows calls f with candidate entries behind the key after, size at a time, until f returns false. The entries are
// not converted.
func (sel *Selector) Windows(
	snapshot *watchcache.Snapshot, after string, size int, f func([]*watchcache.Entry) bool,
) {
	window := make([]*watchcache.Entry, 0, size)
	ok := true
	snapshot.Scan(sel.of.Namespace, after, func(e *watchcache.Entry) bool {
		if !sel.MayMatch(e) || !sel.Sight.Includes(e) { // the conversion of a hidden object may fail, and name it
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

// MayMatch reports whether an unconverted entry can match: names and uids are the same in all versions.
func (sel *Selector) MayMatch(e *watchcache.Entry) bool {
	if sel.SkipUnreadable && e.Unreadable() != nil || !sel.Shard.Includes(e) {
		return false
	}
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

// Unreadable returns at most limit unreadable entries behind the key after that are in the selector's range and visible
// to the caller. Labels and fields of unreadable entries are unknown, so they do not count.
func (sel *Selector) Unreadable(snapshot *watchcache.Snapshot, after string, limit int) []*watchcache.Entry {
	if sel.Name == "" && sel.Shard == nil && sel.Sight == nil {
		return snapshot.FirstUnreadable(sel.Namespace, after, limit)
	}
	var found []*watchcache.Entry
	for _, e := range snapshot.FirstUnreadable(sel.Namespace, after, snapshot.Unreadable()) {
		if (sel.Name == "" || e.Name == sel.Name) && sel.Shard.Includes(e) && sel.Sight.Includes(e) &&
			len(found) < limit {
			found = append(found, e)
		}
	}
	return found
}
