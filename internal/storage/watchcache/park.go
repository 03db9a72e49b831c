package watchcache

import (
	"sync"
	"sync/atomic"
)

// parked are the watchers of a collection that wait for events of one value only, by that value. An event costs a look
// at each index that a watcher waits by, and the wake-ups of those that want it; the others do not run. What wakes
// goes on at the event that woke it, so what it has slept through does not count as missed, however much it was.
type parked struct {
	count atomic.Int64 // of all parked, readable without the lock

	mu   sync.Mutex
	seen uint64 // events before this one have woken whom they concern
	by   map[any]*sleepersBy
}

// sleepersBy are those who wait by one index.
type sleepersBy struct {
	value func(*Entry) string
	of    map[string][]*sleeper
}

// sleeper is one watcher asleep.
type sleeper struct {
	name  any
	value string
	woken chan struct{} // closed by who takes it out of parked
	at    uint64        // the event that woke it; valid once woken is closed
	from  uint64        // the first event that it has not seen
	place int           // in its list, -1 when it has been taken out
}

// park puts s to sleep. It returns false, and s is not asleep, if there may be an event for it already.
func (c *Collection) park(s *sleeper, value func(*Entry) string) bool {
	all := &c.parked
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.count.Load() == 0 {
		all.seen = s.from // nothing was counted since the last one was unparked
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
	s.place = len(by.of[s.value])
	by.of[s.value] = append(by.of[s.value], s)
	all.count.Add(1)
	// The view looks at count after it has added an event, and we look at events after count: one sees the other.
	if e := c.history.ring.Load().at(s.from); e != nil && e.Revision <= c.view.Revision() {
		all.takeLocked(s)
		return false
	}
	return true
}

// unpark takes s out, and returns the first event that may concern it.
func (c *Collection) unpark(s *sleeper) uint64 {
	all := &c.parked
	all.mu.Lock()
	defer all.mu.Unlock()
	if s.place < 0 {
		return max(s.at, s.from)
	}
	all.takeLocked(s)
	return max(all.seen, s.from)
}

func (all *parked) takeLocked(s *sleeper) {
	by := all.by[s.name]
	list := by.of[s.value]
	last := list[len(list)-1]
	list[s.place], last.place = last, s.place
	list[len(list)-1] = nil
	if list = list[:len(list)-1]; len(list) > 0 {
		by.of[s.value] = list
	} else if delete(by.of, s.value); len(by.of) == 0 {
		delete(all.by, s.name)
	}
	s.place = -1
	all.count.Add(-1)
}

// wakeParked wakes those whom events since the last call concern.
func (c *Collection) wakeParked() {
	all := &c.parked
	if all.count.Load() == 0 {
		return
	}
	shown := c.view.Revision() // later events are not for watchers yet
	all.mu.Lock()
	defer all.mu.Unlock()
	r := c.history.ring.Load()
	for next := r.next.Load(); all.seen < next && len(all.by) > 0; all.seen++ {
		e := r.at(all.seen)
		if e == nil { // it has left the ring before anybody looked: all must find out for themselves
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
	if first := r.first.Load(); all.seen < first { // the history has begun anew
		all.wakeAllLocked()
	}
}

func (all *parked) wakeLocked(by *sleepersBy, value string) {
	list := by.of[value]
	for len(list) > 0 {
		s := list[len(list)-1]
		s.at = all.seen
		all.takeLocked(s)
		close(s.woken)
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
