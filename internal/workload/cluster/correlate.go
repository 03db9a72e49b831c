package cluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"
)

// Limits of the event correlation of client-go 0.36 (tools/record, NewEventCorrelator): the tenth event with the same
// reason and another message is combined with the ones before it, and each object has an event budget that refills
// slowly.
const (
	similarMost  = 10
	similarEvery = 10 * time.Minute // since the last one; then counting begins anew
	budgetMost   = 25
	budgetRate   = float32(1. / 300) // per second, and as imprecise as in client-go
	// objectsMost is the number of objects that a line tracks. All lines together track as many as client-go's
	// recorder.
	objectsMost = 4096 / recorderLines
)

// combined is the message prefix of a combined event.
const combined = "(combined from similar events): "

// correlator aggregates and rate-limits the events about some objects. Its owner locks it.
type correlator struct {
	similar *lru.Cache // *similar by the key of an Event without message and field
	budgets *lru.Cache // *budget by the key of an origin
}

func newCorrelator() correlator {
	return correlator{similar: lru.New(objectsMost), budgets: lru.New(objectsMost)}
}

// similar are events about an object that differ in their messages.
type similar struct {
	messages []string // at most similarMost-1
	last     time.Time
}

// origin is the reporting component and the object that an event is about.
type origin struct {
	about corev1.ObjectReference
	host  string
}

// budget is the number of events that an origin may still write.
type budget struct {
	left float64
	at   time.Time // of the last change of left
}

// correlate returns the key under which a report is counted: its own, or the key of the combined event if many are
// similar. It returns false if the budget is spent. Events with an Action come from the newer recorder, which
// correlates nothing.
func (c *correlator) correlate(one *report) bool {
	all := one.Event
	all.About.ResourceVersion = ""
	one.key = keyOf(all)
	if one.Action != "" {
		return true
	}
	all.About.FieldPath, all.Message = "", ""
	ofAll := keyOf(all)
	s, ok := recall[similar](c.similar, ofAll)
	if !ok || one.at.Sub(s.last) > similarEvery {
		s.messages = nil
	}
	s.last = one.at
	switch {
	case slices.Contains(s.messages, one.Message):
	case len(s.messages) < similarMost-1:
		s.messages = append(s.messages, one.Message)
	default:
		one.key, one.Message, one.combined = ofAll, combined+one.Message, true
	}
	return c.spend(origin{all.About, one.Host}, one.at)
}

// spend takes one event from an origin's budget.
func (c *correlator) spend(from origin, now time.Time) bool {
	b, ok := recall[budget](c.budgets, keyOf(from))
	if !ok {
		b.left = budgetMost
	} else if since := now.Sub(b.at); since > 0 {
		b.left = min(budgetMost, b.left+since.Seconds()*float64(budgetRate))
	}
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// recall returns the cached value of a key, and creates it if there is none.
func recall[T any](from *lru.Cache, of key) (cached *T, found bool) {
	if cached, found := from.Get(of); found {
		return cached.(*T), true
	}
	cached = new(T)
	from.Add(of, cached)
	return cached, false
}
