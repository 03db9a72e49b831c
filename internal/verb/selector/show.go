package selector

import (
	"k8s.io/apimachinery/pkg/watch"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// The types of events by which an object leaves a watch and stays in the collection: Left if the selectors do not keep
// it any more, Hidden if the caller may not read it any more. Clients read DELETED.
const (
	Left   watch.EventType = "LEFT"
	Hidden watch.EventType = "HIDDEN"
)

// Show returns the type of event as which a watch shows a change of type t, from prev to now. It is not ok if the watch
// does not show the change.
func (sel *Selector) Show(t watchcache.EventType, now, prev *watchcache.Entry) (kind watch.EventType, ok bool) {
	if sel.of.Namespace != "" && now.Namespace != sel.of.Namespace {
		return "", false
	}
	if sel.All() {
		return watchType(t), true
	}
	if now.Unreadable() != nil { // the selectors cannot decide, so the client gets the event
		return watchType(t), sel.MayMatch(now)
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
