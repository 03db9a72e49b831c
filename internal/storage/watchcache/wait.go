package watchcache

import (
	"container/heap"
	"context"
	"sync"
	"sync/atomic"
)

// WaitFor returns nil when Revision has reached rev, or ctx's error when ctx ends before.
func (v *View) WaitFor(ctx context.Context, rev int64) error {
	if v.Revision() >= rev {
		return nil
	}
	w := v.waiters.add(rev)
	if v.Revision() >= rev { // the revision arrived between the check and the registration
		v.waiters.drop(w)
		return nil
	}
	v.store.RequestProgress(rev)
	select {
	case <-w.reached:
		return nil
	case <-ctx.Done():
		v.waiters.drop(w)
		return ctx.Err()
	}
}

// Fresh waits until the view contains every write acknowledged before the call, and returns the view's revision. Later
// reads of the view are linearizable. If no write is pending, it costs three atomic reads, plus two and a lock of etcd
// if others write to the embedded etcd.
func (v *View) Fresh(ctx context.Context) (int64, error) {
	rev, err := v.store.Revision(ctx)
	if err != nil {
		return 0, err
	}
	if err := v.WaitFor(ctx, rev); err != nil {
		return 0, err
	}
	return v.Revision(), nil
}

// FreshOwn is Fresh for the writes of this process only: writes of others may be missing for as long as the store's
// watch takes. It sends the store no request.
func (v *View) FreshOwn(ctx context.Context) error { return v.WaitFor(ctx, v.store.Written()) }

// waiters holds the goroutines that wait for a revision, the nearest first. The view's goroutine touches only those
// that it wakes, and nothing if none waits.
type waiters struct {
	count atomic.Int64 // length of heap, readable without the lock
	mu    sync.Mutex
	heap  waitHeap
}

type waiter struct {
	rev     int64
	index   int // in the heap; -1 when removed
	reached chan struct{}
}

func (ws *waiters) add(rev int64) *waiter {
	w := &waiter{rev: rev, reached: make(chan struct{})}
	ws.mu.Lock()
	heap.Push(&ws.heap, w)
	ws.count.Store(int64(len(ws.heap)))
	ws.mu.Unlock()
	return w
}

func (ws *waiters) drop(w *waiter) {
	ws.mu.Lock()
	if w.index >= 0 {
		heap.Remove(&ws.heap, w.index)
		ws.count.Store(int64(len(ws.heap)))
	}
	ws.mu.Unlock()
}

// release wakes the waiters for rev or less. The revision is stored before: a waiter that registers after count was
// read sees it.
func (ws *waiters) release(rev int64) {
	if ws.count.Load() == 0 {
		return
	}
	ws.mu.Lock()
	for len(ws.heap) > 0 && ws.heap[0].rev <= rev {
		close(heap.Pop(&ws.heap).(*waiter).reached)
	}
	ws.count.Store(int64(len(ws.heap)))
	ws.mu.Unlock()
}

// waitHeap is a container/heap by revision.
type waitHeap []*waiter

func (h waitHeap) Len() int           { return len(h) }
func (h waitHeap) Less(i, j int) bool { return h[i].rev < h[j].rev }
func (h waitHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *waitHeap) Push(x any) {
	w := x.(*waiter)
	w.index = len(*h)
	*h = append(*h, w)
}

func (h *waitHeap) Pop() any {
	old := *h
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	w.index = -1
	return w
}
