package watchcache

import (
	"context"
	"errors"
)

// ErrExpired means that history after the requested revision is gone; the client must list again.
var ErrExpired = errors.New("the requested history is no longer available")

// Watcher is a cursor into a collection's history. It belongs to one goroutine. An idle watcher costs nothing and
// blocks no other; if it is polled too late, it gets ErrExpired. It must be closed: while it waits for a value, the
// collection refers to it.
type Watcher struct {
	c       *Collection
	after   int64  // events up to this revision are skipped
	cursor  uint64 // sequence number of the next event
	changed chan struct{}
	where   Index // Name is nil if the watcher needs all events
	value   string
	asleep  *sleeper // nil while awake, and always without where
	wake    func()   // of Sleep without where; nil if the collection does not call it
	at      int      // index in the collection's list of watchers with wake
	buf     []*Event
	err     error
}

// Where limits wake-ups to events of objects with this value in ix, before or after the change; value is not empty.
// Poll may still return other events. Call it before the first Poll.
func (w *Watcher) Where(ix Index, value string) { w.where, w.value = ix, value }

// pollLimit is the maximum number of events in one Poll: enough to write them in one piece, few enough to check the
// context in between.
const pollLimit = 256

// Poll returns the available events without waiting. All events up to revision have then been delivered, possibly none.
// The slice is valid until the next call.
//
// It returns ErrExpired, then and for ever, if events were lost.
func (w *Watcher) Poll() (events []*Event, revision int64, err error) {
	if w.err != nil {
		return nil, 0, w.err
	}
	if w.asleep != nil {
		w.cursor = w.c.unpark(w.asleep)
		w.asleep = nil
	}
	// The order matters: a signal after the first line is seen by the last.
	if w.where.Name == nil && w.wake == nil {
		w.changed = w.c.signal()
	}
	seen := w.c.view.Revision()
	r := w.c.history.ring.Load()
	next := r.next.Load()
	clear(w.buf) // a watcher that waits must not retain events
	w.buf = w.buf[:0]
	if w.cursor < r.first.Load() {
		return nil, 0, w.expire()
	}
	for ; w.cursor < next; w.cursor++ {
		e := r.at(w.cursor)
		if e == nil {
			return nil, 0, w.expire()
		}
		if e.Revision > seen { // not yet published, see View.Subscribe
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

// Changed returns a channel that is closed when there may be new events. Call it after a Poll without events. It serves
// a select with timers; Next is simpler.
func (w *Watcher) Changed() <-chan struct{} {
	if w.where.Name == nil || w.err != nil {
		return w.changed
	}
	if w.asleep == nil {
		woken := make(chan struct{})
		if !w.park(func() { close(woken) }) {
			return closed
		}
		w.changed = woken
	}
	return w.changed
}

// park makes wake run at the next event with the watcher's value. It returns false if there may be one already.
func (w *Watcher) park(wake func()) (asleep bool) {
	s := &sleeper{name: w.where.Name, value: w.value, from: w.cursor, wake: wake}
	if !w.c.park(s, w.where.Value) {
		return false
	}
	w.asleep = s
	return true
}

// closed is a closed channel: a receive returns at once.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Next waits for events and returns them. revision is as in Poll. If ctx ends first, it returns no events, ctx's error,
// and the revision up to which everything has been delivered, for a bookmark.
func (w *Watcher) Next(ctx context.Context) (events []*Event, revision int64, err error) {
	for {
		events, revision, err = w.Poll()
		if err != nil || len(events) > 0 {
			return events, revision, err
		}
		select {
		case <-w.Changed():
		case <-ctx.Done():
			return nil, revision, ctx.Err()
		}
	}
}

// Close ends the watcher: Poll and Next return an error from now on.
func (w *Watcher) Close() {
	if w.asleep != nil {
		w.c.unpark(w.asleep)
		w.asleep = nil
	}
	w.c.wakers.remove(w)
	if w.err == nil {
		w.err = errors.New("the watch is closed")
	}
}
