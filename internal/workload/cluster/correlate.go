package cluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"
)

// What kube's recorder does with many events about one object, as of client-go 0.36 (tools/record, NewEventCorrelator):
// the tenth that says something else for the same reason is told in an event for them all, and each object has a
// number of events, of which one comes back from time to time.
const (
	similarMost  = 10
	similarEvery = 10 * time.Minute // since the last one; then counting begins anew
	budgetMost   = 25
	budgetRate   = float32(1. / 300) // a second, and as imprecise as kube's
	// objectsMost is how many objects a line remembers: all together as many as kube's recorder does.
	objectsMost = 4096 / recorderLines
)

// combined is what the message of an event for many begins with.
const combined = "(combined from similar events): "

// correlator decides what becomes of the events about some objects. Its owner locks it.
type correlator struct {
	similar *lru.Cache // from the key of an Event without message and field to *similar
	budgets *lru.Cache // from the key of an origin to *budget
}

func newCorrelator() correlator {
	return correlator{similar: lru.New(objectsMost), budgets: lru.New(objectsMost)}
}

// similar are events about an object that differ in their messages.
type similar struct {
	messages []string // no more than similarMost-1
	last     time.Time
}

// origin is who reports about which object.
type origin struct {
	about corev1.ObjectReference
	host  string
}

// budget is how many events an origin may write.
type budget struct {
	left float64
	at   time.Time // when it was so much
}

// correlate says under which key a report is written, which is that of an event for many if there are many, and false
// if it is not to be. Events with an Action are of the newer kind of recorder, which does nothing of this.
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

// recall returns what a cache has for a key, made now if it has nothing.
func recall[T any](from *lru.Cache, of key) (kept *T, found bool) {
	if kept, found := from.Get(of); found {
		return kept.(*T), true
	}
	kept = new(T)
	from.Add(of, kept)
	return kept, false
}
