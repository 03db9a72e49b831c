package watchcache

import (
	"context"
	"errors"
)

// ErrExpired means that the history between the revision asked for and now is gone; the client must list again.
var ErrExpired = errors.New("the requested history is no longer available")

// Watcher is a cursor into a collection's history. It is for one goroutine. It holds no resources: a watcher that
// nobody reads costs nothing and holds up nobody; when it is read too late, it gets ErrExpired.
type Watcher struct {
	c       *Collection
	after   int64  // events up to this revision are not wanted
	cursor  uint64 // sequence number of the next event
	changed chan struct{}
	buf     []*Event
	err     error
}

// pollLimit is how many events one Poll returns: enough to write them in one piece, few enough to look at the context
// in between.
const pollLimit = 256

// Poll returns the events that are there, without waiting. Everything up to revision has then been delivered (there may
// be none to deliver). The slice is valid until the next call.
//
// ErrExpired, then and for ever, if events were lost.
func (w *Watcher) Poll() (events []*Event, revision int64, err error) {
	if w.err != nil {
		return nil, 0, w.err
	}
	// In this order: what is signalled after the first line is seen by the last.
	w.changed = w.c.signal()
	seen := w.c.view.Revision()
	r := w.c.history.ring.Load()
	next := r.next.Load()
	w.buf = w.buf[:0]
	if w.cursor < r.first.Load() {
		return nil, 0, w.expire()
	}
	for ; w.cursor < next; w.cursor++ {
		e := r.at(w.cursor)
		if e == nil {
			return nil, 0, w.expire()
		}
		if e.Revision > seen { // not yet known to the whole server, see View.Subscribe
			break
		}
		if e.Revision <= w.after {
			continue
		}
		if n := len(w.buf); n >= pollLimit && e.Revision != w.buf[n-1].Revision {
			return w.buf, w.buf[n-1].Revision, nil
		}
		w.buf = append(w.buf, e)
	}
	return w.buf, seen, nil
}

func (w *Watcher) expire() error {
	w.err, w.changed = ErrExpired, nil
	return w.err
}

// Changed returns a channel that is closed when there may be something new since the last Poll. It is for a select with
// timers; Next is simpler.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Next waits until there are events and returns them. revision is as with Poll. When ctx ends first, it returns no
// events, ctx's error, and the revision up to which everything has been delivered: what a bookmark needs.
func (w *Watcher) Next(ctx context.Context) (events []*Event, revision int64, err error) {
	for {
		events, revision, err = w.Poll()
		if err != nil || len(events) > 0 {
			return events, revision, err
		}
		select {
		case <-w.changed:
		case <-ctx.Done():
			return nil, revision, ctx.Err()
		}
	}
}

// Close ends the watcher: Poll and Next return an error from now on.
func (w *Watcher) Close() {
	if w.err == nil {
		w.err = errors.New("the watch is closed")
	}
}
