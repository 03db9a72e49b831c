package watchcache

import (
	"sort"
	"sync/atomic"
	"time"
)

// Bounds of a collection's history. It grows as long as events are young and few enough; a client that was away for
// longer lists again.
const (
	historyEvents = 1 << 17          // at most; kube-apiserver's watch cache holds 102,400. A power of two
	historyBytes  = 16 << 20         // at most, of objects, but historyFloor events are always kept
	historyFloor  = 64               // not fewer for reasons of bytes
	historyAge    = 2 * time.Minute  // older ones go, but historyRest small ones stay
	historyRest   = 64               // events that a quiet collection keeps for ever,
	historyTail   = 256 << 10        // if they are not larger than this together
	frameAge      = 15 * time.Second // encoded frames of older events are forgotten: a watcher that late encodes again
)

// history is the ordered log of a collection's latest events: one writer, any number of readers, no locks. The writer
// never waits for a reader and does not know of any; a reader that comes too late finds its event gone.
type history struct {
	ring atomic.Pointer[ring]
	// lost is the revision up to which events may be missing: those after it are all there.
	lost  atomic.Int64
	bytes int // the writer's
}

// ring holds the events with sequence numbers first <= n < next, number n at n mod len(slots). When it is too small it
// is replaced by a larger one; a reader that still has the old one finds there what it held.
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

// at returns event n; nil if it is not held any more.
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

// expire forgets everything up to rev, so that every watcher ends, also one that had seen all events.
func (h *history) expire(rev int64) {
	h.lost.Store(rev)
	h.ring.Store(newRing(0, h.ring.Load().next.Load()+1))
	h.bytes = 0
}

// sweep forgets what is old, and gives memory back.
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

// raise tells that events up to rev may be missing. Any goroutine.
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
