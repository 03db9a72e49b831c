package read

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/call"
	"github.com/bowsprit/bowsprit/internal/verb/selector"
)

// seeAt restricts a list or watch to objects that the caller could see at a revision and may still see. It returns the
// sight at the revision and the call with the fields masked that the caller may not read, and ErrExpired if the sight
// of that revision has been dropped.
func seeAt(c *call.Call, sel *selector.Selector, revision int64) (*selector.Sight, *call.Call, error) {
	if sel.Sight == nil {
		return nil, c, nil
	}
	var then *selector.Sight
	if then, sel.Sight = sel.Sight.Since(revision); then == nil {
		return nil, c, watchcache.ErrExpired
	}
	return then, c.Narrow(sel.Sight), nil
}

// seeAt starts the watch with the sight of the revision. A client that resumes may hold objects that it can no longer
// see: Poll reports them as deleted.
func (w *Watch) seeAt(revision int64) (err error) {
	var then *selector.Sight
	then, w.c, err = seeAt(w.c, w.sel, revision)
	if w.initial == nil && then != w.sel.Sight {
		w.sel.Sight, w.still = then, w.sel.Sight
	}
	return err
}

// Granted returns a channel that is closed when the caller's permissions change and Poll has events because of it. It
// is nil for a watch that shows everything.
func (w *Watch) Granted() <-chan struct{} {
	if w.sel.Sight == nil {
		return nil
	}
	return w.sel.Sight.Changed()
}

// Turned reports whether the caller's permissions have changed since the last call. Objects that came into sight were
// sent with resourceVersions before From, so a client that resumes needs a bookmark.
func (w *Watch) Turned() bool {
	turned := w.turned
	w.turned = false
	return turned
}

// awaitGrant waits until the view shows the revision of the next permission change, if any: roles take effect slightly
// earlier.
func (w *Watch) awaitGrant(ctx context.Context) error {
	if w.sel.Sight == nil {
		return nil
	}
	next, revision, _ := w.sel.Sight.Next()
	if next == nil {
		return nil
	}
	return w.r.view.WaitFor(ctx, revision)
}

// sightMoves reports whether the sight may change within the events that Poll has.
func (w *Watch) sightMoves() bool {
	if w.sel.Sight == nil {
		return false
	}
	next, _, _ := w.sel.Sight.Next()
	return next != nil || w.still != nil
}

// visible filters changes up to a revision, each by the permissions at its time, and inserts objects that came into or
// left the caller's sight in between.
func (w *Watch) visible(ctx context.Context, changes []Event, revision int64) ([]Event, error) {
	var shown []Event
	if w.still != nil {
		turned, err := w.turn(ctx, w.still, w.from)
		if err != nil {
			return nil, err
		}
		shown, w.still = turned, nil
	}
	for {
		next, at, moved := w.sel.Sight.Next()
		turns := next != nil && at <= revision
		for len(changes) > 0 && !(turns && changes[0].Revision > at) {
			if kind, ok := w.Show(&changes[0]); ok {
				changes[0].kind = kind
				shown = append(shown, changes[0])
			}
			changes = changes[1:]
		}
		if !turns {
			clear(w.window) // shown holds the events
			return shown, nil
		}
		to := selector.NewSight(next)
		if !moved {
			w.sel.Sight = to
			continue
		}
		turned, err := w.turn(ctx, to, at)
		if err != nil {
			return nil, err
		}
		shown, w.turned = append(shown, turned...), w.turned || len(turned) > 0
	}
}

// turn switches to the caller's permissions as of a revision. It returns the objects that leave the sight, as of that
// revision, and then the objects that enter it, in the order of their resourceVersions.
func (w *Watch) turn(ctx context.Context, to *selector.Sight, revision int64) ([]Event, error) {
	snapshot, err := w.r.view.Collection(w.c.Resource.Prefix).SnapshotAt(ctx, revision)
	if err != nil {
		return nil, w.expired(err)
	}
	left, came := w.sel.Turn(snapshot, to)
	events, err := w.moved(ctx, left, revision, Hidden)
	if err != nil {
		return nil, err
	}
	w.sel.Sight = to
	w.c = w.c.Narrow(to)
	added, err := w.moved(ctx, came, revision, watch.Added)
	return append(events, added...), err
}

// moved returns events for the entries that match the watch's selectors.
func (w *Watch) moved(
	ctx context.Context, entries []*watchcache.Entry, revision int64, kind watch.EventType,
) ([]Event, error) {
	if w.r.convert.Changes(w.c.Resource) {
		var err error
		if entries, err = w.r.AllInVersion(ctx, w.c, entries); err != nil {
			return nil, err
		}
	}
	var out []Event
	for _, e := range entries {
		if w.sel.Matches(e) {
			out = append(out, Event{
				Event: &watchcache.Event{Type: watchcache.Modified, Revision: revision, Entry: e, Prev: e},
				Entry: e, Prev: e, kind: kind,
			})
		}
	}
	return out, nil
}
