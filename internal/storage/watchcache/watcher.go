package watchcache

import (
	"context"
	"errors"
)

// ErrExpired means that the history between the revision asked for and now is gone; the client must list again.
var ErrExpired = errors.New("the requested history is no longer available")

// Watcher is a cursor into a collection's history. It is for one goroutine. A watcher that is not read costs nothing
// and holds up no other; when it is read too late, it gets ErrExpired. Close it: one that waits for a value is known to
// the collection.
type Watcher struct {
	c       *Collection
	after   int64  // events up to this revision are not wanted
	cursor  uint64 // sequence number of the next event
	changed chan struct{}
	where   Index // Name is nil if all events are wanted
	value   string
	asleep  *sleeper // nil while awake, and always without where
	buf     []*Event
	err     error
}

// Where tells that only events matter whose object has this value by ix, which is not empty, now or before: others
// need not wake the watcher. Poll may still return them. To be called before the first Poll.
func (w *Watcher) Where(ix Index, value string) { w.where, w.value = ix, value }

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
	if w.asleep != nil {
		w.cursor = w.c.unpark(w.asleep)
		w.asleep = nil
	}
	// In this order: what is signalled after the first line is seen by the last.
	if w.where.Name == nil {
		w.changed = w.c.signal()
	}
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

// Changed returns a channel that is closed when there may be something new since the last Poll, which has returned no
// events. It is for a select with timers; Next is simpler.
func (w *Watcher) Changed() <-chan struct{} {
	if w.where.Name == nil || w.err != nil {
		return w.changed
	}
	if w.asleep == nil {
		s := &sleeper{name: w.where.Name, value: w.value, from: w.cursor, woken: make(chan struct{})}
		if !w.c.park(s, w.where.Value) {
			return closed
		}
		w.asleep = s
	}
	return w.asleep.woken
}

// closed is a closed channel: a receive returns at once.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Next waits until there are events and returns them. revision is as with Poll. When ctx ends first, it returns no
// events, ctx's error, and the revision up to which everything has been delivered: what a bookmark needs.
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
	if w.err == nil {
		w.err = errors.New("the watch is closed")
	}
}
