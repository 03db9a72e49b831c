package watchcache

import (
	"sync"
	"sync/atomic"
)

// wakers holds the watchers of a collection that are woken by a function instead of a channel: a watcher then needs no
// goroutine that waits. A watcher stays in the list until it is closed, so an event costs a call for each of them and
// no allocation.
type wakers struct {
	count atomic.Int64 // number of watchers, readable without the lock

	mu  sync.Mutex
	all []*Watcher
}

// smallBuffer is the number of events for which a sleeping watcher keeps memory.
const smallBuffer = 8

// Sleep makes wake run when there may be new events. Call it after a Poll without events, always with the same wake;
// then call Poll after each run of wake. It returns false, and wake need not run, if there may be events already.
//
// wake runs in another goroutine, perhaps several times, and until Close has returned. It must not block or call the
// watcher. A watcher that sleeps is not asked for Changed.
func (w *Watcher) Sleep(wake func()) (asleep bool) {
	if cap(w.buf) > smallBuffer {
		w.buf = nil
	}
	switch {
	case w.err != nil:
		return false
	case w.where.Name != nil:
		return w.asleep != nil || w.park(wake)
	case w.wake != nil:
		return true
	}
	w.wake, w.changed = wake, nil
	w.c.wakers.add(w)
	return false // an event may have come before
}

// Return makes the next Poll return events again, from e on, which the last Poll has returned.
func (w *Watcher) Return(e *Event) { w.cursor = e.sequence }

func (ws *wakers) add(w *Watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.at = len(ws.all)
	ws.all = append(ws.all, w)
	ws.count.Add(1)
}

func (ws *wakers) remove(w *Watcher) {
	if w.wake == nil {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	last := ws.all[len(ws.all)-1]
	ws.all[w.at], last.at = last, w.at
	ws.all[len(ws.all)-1] = nil
	ws.all = ws.all[:len(ws.all)-1]
	w.wake = nil
	ws.count.Add(-1)
}

func (ws *wakers) wake() {
	if ws.count.Load() == 0 {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.all {
		w.wake()
	}
}
