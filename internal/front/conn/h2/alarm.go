package h2

import (
	"container/heap"
	"sync"
	"time"
)

// alarms wakes streams that were handed over at times of their choice, with one timer for all streams of the server.
type alarms struct {
	mu    sync.Mutex
	heap  alarmHeap
	timer *time.Timer
}

// alarm is the alarm of one stream. alarms.mu guards it.
type alarm struct {
	at    time.Time // zero for none
	index int       // in the heap
}

// set sets the time of a stream's alarm; a zero time removes it.
func (a *alarms) set(st *stream, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	mine := &st.carried.alarm
	if mine.at.Equal(at) {
		return
	}
	was := mine.at
	switch mine.at = at; {
	case at.IsZero():
		heap.Remove(&a.heap, mine.index)
	case was.IsZero():
		heap.Push(&a.heap, st)
	default:
		heap.Fix(&a.heap, mine.index)
	}
	a.resetLocked()
}

// resetLocked sets the timer to the first alarm.
func (a *alarms) resetLocked() {
	switch {
	case len(a.heap) == 0:
		if a.timer != nil {
			a.timer.Stop()
		}
	case a.timer == nil:
		a.timer = time.AfterFunc(time.Until(a.heap[0].carried.alarm.at), a.ring)
	default:
		a.timer.Reset(time.Until(a.heap[0].carried.alarm.at))
	}
}

// ring wakes the streams of all alarms that are due.
func (a *alarms) ring() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for now := time.Now(); len(a.heap) > 0 && !a.heap[0].carried.alarm.at.After(now); {
		st := heap.Pop(&a.heap).(*stream)
		st.carried.alarm.at = time.Time{}
		st.Wake()
	}
	a.resetLocked()
}

// alarmHeap is a container/heap by time.
type alarmHeap []*stream

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].carried.alarm.at.Before(h[j].carried.alarm.at) }
func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].carried.alarm.index, h[j].carried.alarm.index = i, j
}

func (h *alarmHeap) Push(x any) {
	st := x.(*stream)
	st.carried.alarm.index = len(*h)
	*h = append(*h, st)
}

func (h *alarmHeap) Pop() any {
	old := *h
	st := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return st
}
