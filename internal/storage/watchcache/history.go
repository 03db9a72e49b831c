package watchcache

import (
	"sort"
	"sync/atomic"
	"time"
)

// Bounds of a collection's history. It grows as long as events are young and few enough; a client that was away for
// longer lists again.
const (
	historyEvents = 1 << 17          // maximum, a power of two; kube-apiserver's watch cache holds 102,400
	historyBytes  = 16 << 20         // maximum size of objects, but historyFloor events are always kept
	historyFloor  = 64               // minimum number of events, whatever their size
	historyAge    = 2 * time.Minute  // older events are dropped, except historyRest small ones
	historyRest   = 64               // number of events that a quiet collection keeps for ever,
	historyTail   = 256 << 10        // unless they exceed this size
	frameAge      = 15 * time.Second // frames of older events are dropped; a later watcher encodes again
)

// history is the ordered log of a collection's latest events: one writer, any number of readers, no locks. The writer
// neither waits for readers nor tracks them; a reader that is too late finds its event gone.
type history struct {
	ring atomic.Pointer[ring]
	// lost is the revision up to which events may be missing; all later events are present.
	lost  atomic.Int64
	bytes int // belongs to the writer
}

// ring holds the events with sequence numbers first <= n < next, number n at n mod len(slots). A larger ring replaces
// it when it is too small; readers of the old ring keep its events.
type ring struct {
	slots       []atomic.Pointer[Event] // length is a power of two, or 0
	first, next atomic.Uint64
}

func newRing(size int, first uint64) *ring {
	r := &ring{slots: make([]atomic.Pointer[Event], size)}
	r.first.Store(first)
	r.next.Store(first)
	return r
}

// at returns event n, or nil if it has been dropped.
func (r *ring) at(n uint64) *Event {
	if len(r.slots) == 0 {
		return nil
	}
	if e := r.slots[n&uint64(len(r.slots)-1)].Load(); e != nil && e.sequence == n {
		return e
	}
	return nil
}

func (r *ring) len() int { return int(r.next.Load() - r.first.Load()) }

// append adds an event. Writer only, as all below.
func (h *history) append(e *Event) {
	r := h.ring.Load()
	if n := r.len(); n == len(r.slots) {
		if n < historyEvents {
			r = h.resize(max(8, 2*n))
		} else {
			h.evict(r)
		}
	}
	n := r.next.Load()
	e.sequence = n
	h.bytes += e.size()
	r.slots[n&uint64(len(r.slots)-1)].Store(e)
	r.next.Store(n + 1)
	for h.bytes > historyBytes && r.len() > historyFloor {
		h.evict(r)
	}
}

// evict forgets the oldest event. The loss is announced first: a reader that found its start before it then sees it.
func (h *history) evict(r *ring) {
	n := r.first.Load()
	slot := &r.slots[n&uint64(len(r.slots)-1)]
	e := slot.Load()
	h.lost.Store(e.Revision)
	r.first.Store(n + 1)
	slot.Store(nil)
	h.bytes -= e.size()
}

// resize moves the events to a ring of another size.
func (h *history) resize(size int) *ring {
	old := h.ring.Load()
	first, next := old.first.Load(), old.next.Load()
	r := newRing(size, first)
	for n := first; n < next; n++ {
		r.slots[n&uint64(size-1)].Store(old.at(n))
	}
	r.next.Store(next)
	h.ring.Store(r)
	return r
}

// expire drops all events up to rev, so that every watcher ends, including up-to-date ones.
func (h *history) expire(rev int64) {
	h.lost.Store(rev)
	h.ring.Store(newRing(0, h.ring.Load().next.Load()+1))
	h.bytes = 0
}

// sweep drops old events and releases memory.
func (h *history) sweep(now int64) {
	r := h.ring.Load()
	for r.len() > 0 {
		e := r.at(r.first.Load())
		if now-e.at < int64(historyAge) || r.len() <= historyRest && h.bytes <= historyTail {
			break
		}
		h.evict(r)
	}
	for n := r.first.Load(); n < r.next.Load(); n++ {
		e := r.at(n)
		if now-e.at < int64(frameAge) {
			break
		}
		e.encoded.forget()
	}
	size := len(r.slots)
	for size > 8 && r.len() <= size/4 {
		size /= 2
	}
	if r.len() == 0 {
		size = 0
	}
	if size < len(r.slots) {
		h.resize(size)
	}
}

// raise records that events up to rev may be missing. Any goroutine may call it.
func (h *history) raise(rev int64) {
	for {
		old := h.lost.Load()
		if old >= rev || h.lost.CompareAndSwap(old, rev) {
			return
		}
	}
}

// seek returns the sequence number of the first event after rev; false if events after rev are missing.
func (h *history) seek(rev int64) (uint64, bool) {
	for {
		r := h.ring.Load()
		first, next := r.first.Load(), r.next.Load()
		missing := false
		i := sort.Search(int(next-first), func(i int) bool {
			e := r.at(first + uint64(i))
			missing = missing || e == nil
			return e != nil && e.Revision > rev
		})
		if rev < h.lost.Load() {
			return 0, false
		}
		if !missing {
			return first + uint64(i), true
		}
	}
}
