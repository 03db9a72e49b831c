package watchcache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// notified returns a view without a store that wakes its watchers.
func notified(t *testing.T) *View {
	t.Helper()
	v := New(nil, Options{Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { v.notifier.run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return v
}

// TestSleepersMissNothing has watchers of single values follow a collection under constant change.
func TestSleepersMissNothing(t *testing.T) {
	t.Parallel()
	v := notified(t)
	c := v.Collection("a.b/cs")
	calls := 0
	value := byN(&calls).Value
	var mu sync.Mutex // guards calls: here several goroutines count
	ix := Index{Name: "n", Value: func(e *Entry) string { mu.Lock(); defer mu.Unlock(); return value(e) }}
	const values, events = 20, 5000
	concerns := func(e *Event, n string) bool {
		return ix.Value(e.Entry) == n || e.Prev != nil && ix.Value(e.Prev) == n
	}
	var all []*Event
	v.Subscribe(func(batch []*Event) { all = append(all, batch...) })
	type result struct{ got []*Event }
	results := make([]result, 3*values)
	var watching sync.WaitGroup
	for i := range results {
		w, err := c.Watch(0)
		if err != nil {
			t.Fatal(err)
		}
		n := fmt.Sprint(i % values)
		w.Where(ix, n)
		watching.Go(func() {
			defer w.Close()
			for last := int64(0); last < events; {
				batch, rev, err := w.Poll()
				if err != nil {
					t.Errorf("value %s at %d: %v", n, last, err)
					return
				}
				for _, e := range batch {
					if concerns(e, n) {
						results[i].got = append(results[i].got, e)
					}
				}
				if last = rev; len(batch) > 0 || last == events {
					continue
				}
				select {
				case <-w.Changed():
				case <-t.Context().Done():
					return
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(5, 6))
	for i := range events - values {
		n := fmt.Sprint(r.IntN(values))
		if r.IntN(4) == 0 {
			put(v, fmt.Sprintf("ns/o%d", i), n)
		} else {
			put(v, fmt.Sprintf("ns/x%d", r.IntN(50)), n)
		}
	}
	for n := range values { // so that each watcher receives an end
		put(v, fmt.Sprintf("ns/end%d", n), fmt.Sprint(n))
	}
	v.apply(store.WatchBatch{Revision: events})
	// A watcher parked at the end must be unparked by a last event with its value.
	for n := range values {
		put(v, "ns/bell", fmt.Sprint(n))
	}
	watching.Wait()
	for i, res := range results {
		n, at := fmt.Sprint(i%values), 0
		for _, e := range all {
			if e.Revision > events || !concerns(e, n) {
				continue
			}
			if at >= len(res.got) || res.got[at] != e {
				t.Fatalf("value %s: event %d of %d is not the one at %d", n, at, len(res.got), e.Revision)
			}
			at++
		}
	}
	if c.parked.count.Load() != 0 || len(c.parked.by) != 0 {
		t.Errorf("%d are still asleep", c.parked.count.Load())
	}
}

// TestOnlyThoseConcernedWake counts wake-ups, and sleeps through more than the history holds.
func TestOnlyThoseConcernedWake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := notified(t)
		c := v.Collection("a.b/cs")
		calls := 0
		ix := byN(&calls)
		var woken [10]atomic.Int64
		ctx, cancel := context.WithCancel(context.Background())
		var watching sync.WaitGroup
		for i := range woken {
			w, err := c.Watch(0)
			if err != nil {
				t.Fatal(err)
			}
			w.Where(ix, fmt.Sprint(i))
			watching.Go(func() {
				defer w.Close()
				for {
					_, _, err := w.Next(ctx)
					if errors.Is(err, context.Canceled) {
						return
					}
					if err != nil {
						t.Errorf("watcher %d: %v", i, err)
						return
					}
					woken[i].Add(1)
				}
			})
		}
		check := func(want ...int64) {
			t.Helper()
			synctest.Wait()
			for i := range woken {
				if got := woken[i].Swap(0); got != want[i] {
					t.Errorf("watcher %d was woken %d times, want %d", i, got, want[i])
				}
			}
		}
		synctest.Wait()
		put(v, "ns/a", "3")
		check(0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
		put(v, "ns/a", "4") // it leaves one value and joins another
		check(0, 0, 0, 1, 1, 0, 0, 0, 0, 0)
		calls = 0
		put(v, "ns/b", "none")
		check(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		if calls != 1 {
			t.Errorf("a change was looked at %d times for %d watchers", calls, len(woken))
		}
		first := c.history.ring.Load().first.Load()
		large := labelled("large", strings.Repeat("x", historyBytes/historyFloor))
		for range historyFloor + 1 {
			rev := v.Revision() + 1
			v.apply(store.WatchBatch{
				Revision: rev, Events: []store.Event{{Key: "a.b/cs/ns/large", Value: large, Revision: rev}},
			})
			synctest.Wait()
		}
		if c.history.ring.Load().first.Load() == first {
			t.Error("the history has lost nothing")
		}
		check(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		put(v, "ns/a", "-")
		check(0, 0, 0, 0, 1, 0, 0, 0, 0, 0)
		cancel()
		watching.Wait()
	})
}
