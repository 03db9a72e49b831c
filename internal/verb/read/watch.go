package read

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/call"
	"github.com/bowsprit/bowsprit/internal/verb/selector"
)

// Watch is one watch of a collection: the initial state, if requested, and the changes after it, filtered by selectors.
// It belongs to one goroutine.
type Watch struct {
	r       *Reader
	c       *call.Call
	sel     *selector.Selector
	from    int64                // the watch sends events after this revision
	initial *watchcache.Snapshot // objects to send first; nil for none
	watcher *watchcache.Watcher
	err     error // reason why watcher is nil
	window  []Event
	turned  bool // the caller's permissions changed since the last call of Turned

	// still is the part of the sight at from that remains visible; nil if all of it does. Poll switches to it first.
	still *selector.Sight
}

// Event is a change in the watch's version: the object after and before it. For kinds without a webhook these are the
// event's own entries.
type Event struct {
	*watchcache.Event
	Entry, Prev *watchcache.Entry
	// kind is the result of Show, if already known.
	kind watch.EventType
}

// Watch starts a watch. The error is about its parameters. Initial and Poll return later errors, which the client
// receives inside the stream.
func (r *Reader) Watch(ctx context.Context, c *call.Call, o *metainternal.ListOptions) (*Watch, error) {
	if err := watchOne(c, o); err != nil {
		return nil, err
	}
	sel, err := r.selector(c, o)
	if err != nil {
		return nil, err
	}
	w := &Watch{r: r, c: c, sel: sel}
	if err := w.start(ctx, o); err != nil {
		return nil, err
	}
	if w.err = w.seeAt(w.from); w.err != nil {
		return w, nil
	}
	w.watcher, w.err = r.view.Collection(c.Resource.Prefix).Watch(w.from)
	return w, nil
}

// watchOne restricts a watch with a name, from the path (the old form /watch/…/name), to that object.
func watchOne(c *call.Call, o *metainternal.ListOptions) error {
	switch {
	case c.Name == "":
	case o.FieldSelector == nil || o.FieldSelector.Empty():
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", c.Name)
	default:
		if name, ok := o.FieldSelector.RequiresExactMatch("metadata.name"); !ok || name != c.Name {
			return apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
		}
	}
	return nil
}

// start determines the revision after which the watch sends events, and the initial snapshot.
func (w *Watch) start(ctx context.Context, o *metainternal.ListOptions) (err error) {
	wantsInitial := o.SendInitialEvents != nil && *o.SendInitialEvents
	if o.ResourceVersion != "" && o.ResourceVersion != "0" && !wantsInitial {
		w.from, err = parseVersion(o.ResourceVersion)
		return err
	}
	revision, err := w.r.catchUp(ctx, o.ResourceVersion)
	if err != nil {
		return err
	}
	if o.SendInitialEvents != nil && !wantsInitial {
		w.from = revision
		return nil
	}
	w.initial = w.sel.Snapshot(w.r.view.Collection(w.c.Resource.Prefix))
	start, err := w.r.readableFrom(ctx, w.c, w.sel, listStart{snapshot: w.initial})
	if err != nil {
		return err
	}
	w.initial = start.snapshot
	w.from = w.initial.Revision
	return nil
}

// Call returns the call of the watch, with the fields masked that its user may not read by now.
func (w *Watch) Call() *call.Call { return w.c }

// Close ends the watch.
func (w *Watch) Close() {
	if w.watcher != nil {
		w.watcher.Close()
	}
}

// Err returns the reason why the watch cannot start at the requested revision, or nil.
func (w *Watch) Err() error { return w.expired(w.err) }

// From returns the revision after which the watch sends events.
func (w *Watch) From() int64 { return w.from }

// Changed returns a channel that is closed when Poll has something to return.
func (w *Watch) Changed() <-chan struct{} { return w.watcher.Changed() }

// Sleep makes wake run when Poll has something to return, as Watcher.Sleep does. Waits must be false.
func (w *Watch) Sleep(wake func()) (asleep bool) {
	if cap(w.window) > smallWindow {
		w.window = nil
	}
	return w.watcher.Sleep(wake)
}

// smallWindow is the number of events for which a sleeping watch keeps memory.
const smallWindow = 4

// Waits reports whether Poll may wait, for a webhook that converts objects or for new permissions, or whether the watch
// must follow permissions.
func (w *Watch) Waits() bool { return w.sel.Sight != nil || w.r.convert.Changes(w.c.Resource) }

// Return makes the next Poll return changes again, from ev on, which the last Poll has returned. Waits must be false.
func (w *Watch) Return(ev *Event) {
	w.watcher.Return(ev.Event)
	w.from = ev.Revision - 1
}

// Initial calls send with each object of the initial state until send returns false. It calls pause before it waits for
// a conversion. ok is false if either function returned false.
func (w *Watch) Initial(ctx context.Context, send func(*watchcache.Entry) bool, pause func() bool) (ok bool,
	err error) {
	ok = true
	if w.initial == nil {
		return ok, nil
	}
	if !w.r.convert.Changes(w.c.Resource) {
		w.sel.Scan(w.initial, "", func(e *watchcache.Entry) bool {
			if w.sel.Matches(e) {
				ok = send(e)
			}
			return ok
		})
		return ok, nil
	}
	w.sel.Windows(w.initial, "", convertedWindow, func(window []*watchcache.Entry) bool {
		if window, err = w.r.AllInVersion(ctx, w.c, window); err != nil {
			ok = false
			return false
		}
		for _, e := range window {
			if ok = !w.sel.Matches(e) || send(e); !ok {
				return false
			}
		}
		return pause()
	})
	return ok, err
}

// Sharded reports whether the watch covers a shard.
func (w *Watch) Sharded() bool { return w.sel.Shard != nil }

// HasInitial reports whether the watch sends the initial state.
func (w *Watch) HasInitial() bool { return w.initial != nil }

// Follow makes the watch wake up only for events that its selectors may show. Call it after Initial and before Poll.
func (w *Watch) Follow() {
	if ix, value, ok := w.sel.Concern(); ok {
		w.watcher.Where(ix, value)
	}
}

// Poll returns the changes since the last call. The slice is valid until the next call; From then returns the revision
// that is covered. more is true if further changes may be ready. An error ends the watch; it is ctx.Err() if ctx is
// done.
func (w *Watch) Poll(ctx context.Context) (changes []Event, more bool, err error) {
	if err := w.awaitGrant(ctx); err != nil {
		return nil, false, err
	}
	events, revision, err := w.watcher.Poll()
	if err != nil {
		return nil, false, w.expired(err)
	}
	if changes, err = w.changes(ctx, events); err == nil && w.sel.Sight != nil {
		changes, err = w.visible(ctx, changes, revision)
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	w.from = max(w.from, revision)
	return changes, len(events) > 0, err
}

// changes converts events to the watch's version in one batch. A deletion shows the object's last state, which needs no
// webhook call if it was shown before.
func (w *Watch) changes(ctx context.Context, events []*watchcache.Event) ([]Event, error) {
	out := w.window[:0]
	defer func() { w.window = out }()
	if !w.r.convert.Changes(w.c.Resource) {
		for _, ev := range events {
			out = append(out, Event{Event: ev, Entry: ev.Entry, Prev: ev.Prev})
		}
		return out, nil
	}
	var entries []*watchcache.Entry
	moves := w.sightMoves()
	for _, ev := range events {
		if w.c.Namespace != "" && ev.Entry.Namespace != w.c.Namespace || !w.sel.MayMatch(ev.Entry) ||
			!moves && !w.sel.Sight.Includes(ev.Entry) { // the conversion of a hidden object may fail, and name it
			continue
		}
		one := Event{Event: ev, Entry: ev.Entry, Prev: ev.Prev}
		if ev.Type == watchcache.Deleted && ev.Prev != nil {
			one.Entry = nil
		}
		if w.sel.All() && one.Entry != nil {
			one.Prev = nil // nothing reads it
		}
		out, entries = append(out, one), append(entries, one.Entry, one.Prev)
	}
	entries, err := w.r.AllInVersion(ctx, w.c, entries)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].Entry, out[i].Prev = entries[2*i], entries[2*i+1]; out[i].Entry == nil {
			out[i].Entry = out[i].Prev.At(out[i].Revision)
		}
	}
	return out, nil
}

// Left and Hidden are the types of events for objects that leave the watch. Left means that the selectors no longer
// match: clients read DELETED with the object as they saw it last. Hidden means that the caller may no longer read the
// object: clients read DELETED with its name.
const (
	Left   = selector.Left
	Hidden = selector.Hidden
)

// Show returns the event type of a change in the watch: ADDED for an object that starts to match, Left for an object
// that no longer matches. ok is false if the watch does not show the change.
func (w *Watch) Show(ev *Event) (kind watch.EventType, ok bool) {
	if ev.kind != "" {
		return ev.kind, true
	}
	return w.sel.Show(ev.Type, ev.Entry, ev.Prev)
}

// expired translates the error of a watch with expired events.
func (w *Watch) expired(err error) error {
	if errors.Is(err, watchcache.ErrExpired) {
		return tooOldWatch(w.from, w.r.view.Revision())
	}
	return err
}
