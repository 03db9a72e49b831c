package scheduler

import (
	"cmp"
	"slices"
)

// waiting is the queue of unschedulable pods, in the order of kube-scheduler's retries: by priority, then by waiting
// time.
type waiting struct {
	positions map[string]queuePosition
	order     []queuePosition
	next      int64
}

// queuePosition is the position of a pod in the queue.
type queuePosition struct {
	key      string
	priority int32
	since    int64 // increases with each add
}

func (p queuePosition) compare(q queuePosition) int {
	return cmp.Or(cmp.Compare(q.priority, p.priority), cmp.Compare(p.since, q.since))
}

func newWaiting() *waiting { return &waiting{positions: map[string]queuePosition{}} }

func (w *waiting) has(key string) bool {
	_, has := w.positions[key]
	return has
}

// add queues a pod; a queued pod keeps its place, unless its priority has changed.
func (w *waiting) add(key string, priority int32) {
	if was, has := w.positions[key]; has && was.priority == priority {
		return
	}
	w.remove(key)
	p := queuePosition{key, priority, w.next}
	w.next++
	at, _ := slices.BinarySearchFunc(w.order, p, queuePosition.compare)
	w.order, w.positions[key] = slices.Insert(w.order, at, p), p
}

func (w *waiting) remove(key string) {
	p, has := w.positions[key]
	if !has {
		return
	}
	delete(w.positions, key)
	at, _ := slices.BinarySearchFunc(w.order, p, queuePosition.compare)
	w.order = slices.Delete(w.order, at, at+1)
}

// each calls f for each pod, in order.
func (w *waiting) each(f func(key string)) {
	for _, p := range w.order {
		f(p.key)
	}
}
