package scheduler

import (
	"cmp"
	"slices"
)

// waiting is the queue of unschedulable pods, in the order of kube-scheduler's retries: by priority, then by waiting
// time.
type waiting struct {
	places map[string]place
	order  []place
	next   int64
}

// place is the position of a pod in the queue.
type place struct {
	key      string
	priority int32
	since    int64 // increases with each add
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(q.priority, p.priority), cmp.Compare(p.since, q.since))
}

func newWaiting() *waiting { return &waiting{places: map[string]place{}} }

func (w *waiting) has(key string) bool {
	_, has := w.places[key]
	return has
}

// add queues a pod; a queued pod keeps its place, unless its priority has changed.
func (w *waiting) add(key string, priority int32) {
	if was, has := w.places[key]; has && was.priority == priority {
		return
	}
	w.remove(key)
	p := place{key, priority, w.next}
	w.next++
	at, _ := slices.BinarySearchFunc(w.order, p, place.compare)
	w.order, w.places[key] = slices.Insert(w.order, at, p), p
}

func (w *waiting) remove(key string) {
	p, has := w.places[key]
	if !has {
		return
	}
	delete(w.places, key)
	at, _ := slices.BinarySearchFunc(w.order, p, place.compare)
	w.order = slices.Delete(w.order, at, at+1)
}

// each calls f for each pod, in order.
func (w *waiting) each(f func(key string)) {
	for _, p := range w.order {
		f(p.key)
	}
}
