package scheduler

import (
	"cmp"
	"slices"
)

// waiting are the pods for which there was no node, in the order in which kube-scheduler looks at them again: by
// priority, then by how long they have been waiting.
type waiting struct {
	places map[string]place
	order  []place
	next   int64
}

// place is that of a pod among others.
type place struct {
	key      string
	priority int32
	since    int64 // a number that grows
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(q.priority, p.priority), cmp.Compare(p.since, q.since))
}

func newWaiting() *waiting { return &waiting{places: map[string]place{}} }

func (w *waiting) has(key string) bool {
	_, has := w.places[key]
	return has
}

// add has a pod wait; one that does already stays where it is, unless its priority has changed.
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
