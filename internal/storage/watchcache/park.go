package watchcache

import (
	"sync"
	"sync/atomic"
)

// parked holds the watchers of a collection that wait only for events with one index value. An event costs a lookup in
// each index that has watchers, and the wake-ups of matching watchers; others do not run. A watcher resumes at the
// event that woke it, so it does not expire because of events it slept through, however many.
type parked struct {
	count atomic.Int64 // number of parked watchers, readable without the lock

	mu   sync.Mutex
	seen uint64 // earlier events have woken their watchers
	by   map[any]*sleepersBy
}

// sleepersBy holds the watchers that wait by one index.
type sleepersBy struct {
	value func(*Entry) string
	of    map[string][]*sleeper
}

// sleeper is one sleeping watcher.
type sleeper struct {
	name  any
	value string
	wake  func() // called by the goroutine that removes it from parked; it must not call the watcher
	at    uint64 // the event that woke it; valid once wake is called
	from  uint64 // the first event that it has not received
	index int    // index in its list, -1 when removed
}

// park puts s to sleep. It returns false, without doing so, if a matching event may exist already.
func (c *Collection) park(s *sleeper, value func(*Entry) string) bool {
	all := &c.parked
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.count.Load() == 0 {
		all.seen = s.from // nothing was tracked since the last watcher was unparked
	}
	if all.seen > s.from {
		return false
	}
	if all.by == nil {
		all.by = map[any]*sleepersBy{}
	}
	by := all.by[s.name]
	if by == nil {
		by = &sleepersBy{value: value, of: map[string][]*sleeper{}}
		all.by[s.name] = by
	}
	s.index = len(by.of[s.value])
	by.of[s.value] = append(by.of[s.value], s)
	all.count.Add(1)
	// The view reads count after it has added an event, and park reads events after it has raised count: one sees the
	// other.
	if e := c.history.ring.Load().at(s.from); e != nil && e.Revision <= c.view.Revision() {
		all.takeLocked(s)
		return false
	}
	return true
}

// unpark removes s and returns the first event that may match.
func (c *Collection) unpark(s *sleeper) uint64 {
	all := &c.parked
	all.mu.Lock()
	defer all.mu.Unlock()
	if s.index < 0 {
		return max(s.at, s.from)
	}
	all.takeLocked(s)
	return max(all.seen, s.from)
}

func (all *parked) takeLocked(s *sleeper) {
	by := all.by[s.name]
	list := by.of[s.value]
	last := list[len(list)-1]
	list[s.index], last.index = last, s.index
	list[len(list)-1] = nil
	if list = list[:len(list)-1]; len(list) > 0 {
		by.of[s.value] = list
	} else if delete(by.of, s.value); len(by.of) == 0 {
		delete(all.by, s.name)
	}
	s.index = -1
	all.count.Add(-1)
}

// wakeParked wakes the watchers that match events since the last call.
func (c *Collection) wakeParked() {
	all := &c.parked
	if all.count.Load() == 0 {
		return
	}
	shown := c.view.Revision() // later events are not visible to watchers yet
	all.mu.Lock()
	defer all.mu.Unlock()
	r := c.history.ring.Load()
	for next := r.next.Load(); all.seen < next && len(all.by) > 0; all.seen++ {
		e := r.at(all.seen)
		if e == nil { // it left the ring unseen: all watchers must check themselves
			all.wakeAllLocked()
			return
		}
		if e.Revision > shown {
			return
		}
		for _, by := range all.by {
			value := by.value(e.Entry)
			all.wakeLocked(by, value)
			if e.Prev != nil {
				if was := by.value(e.Prev); was != value {
					all.wakeLocked(by, was)
				}
			}
		}
	}
	if first := r.first.Load(); all.seen < first { // the history was restarted
		all.wakeAllLocked()
	}
}

func (all *parked) wakeLocked(by *sleepersBy, value string) {
	list := by.of[value]
	for len(list) > 0 {
		s := list[len(list)-1]
		s.at = all.seen
		all.takeLocked(s)
		s.wake()
		list = by.of[value]
	}
}

func (all *parked) wakeAllLocked() {
	for _, by := range all.by {
		for value := range by.of {
			all.wakeLocked(by, value)
		}
	}
}
