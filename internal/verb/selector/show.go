package selector

import (
	"k8s.io/apimachinery/pkg/watch"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Left and Hidden are the types of events for an object that leaves a watch but stays in the collection: Left if the
// selectors no longer match it, Hidden if the caller may no longer read it. Clients read DELETED.
const (
	Left   watch.EventType = "LEFT"
	Hidden watch.EventType = "HIDDEN"
)

// Show returns the event type of a change of type t, from prev to now, in a watch. ok is false if the watch does not
// show the change.
func (sel *Selector) Show(t watchcache.EventType, now, prev *watchcache.Entry) (kind watch.EventType, ok bool) {
	if sel.of.Namespace != "" && now.Namespace != sel.of.Namespace {
		return "", false
	}
	if sel.All() {
		return watchType(t), true
	}
	if now.Unreadable() != nil { // labels and fields cannot decide, so the client gets the event
		return watchType(t), sel.MayMatch(now) && sel.Sight.Includes(now)
	}
	after := t != watchcache.Deleted && sel.Matches(now)
	before := t != watchcache.Added && sel.Matches(prev)
	switch {
	case after && before:
		return watch.Modified, true
	case after:
		return watch.Added, true
	case before && t == watchcache.Deleted:
		return watch.Deleted, true
	case before:
		return Left, true
	}
	return "", false
}

func watchType(t watchcache.EventType) watch.EventType {
	switch t {
	case watchcache.Added:
		return watch.Added
	case watchcache.Deleted:
		return watch.Deleted
	}
	return watch.Modified
}
