package watchcache

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// TestSleepMissesNothing has watchers that are woken by a function follow a collection under constant change: watchers
// of all events, and watchers of single values. Some return events and receive them again.
func TestSleepMissesNothing(t *testing.T) {
	t.Parallel()
	v := notified(t)
	c := v.Collection("a.b/cs")
	const values, events, watchers = 5, 3000, 20
	ix := Index{Name: "n", Value: func(e *Entry) string {
		calls := 0
		return byN(&calls).Value(e)
	}}
	var all []*Event
	v.Subscribe(func(batch []*Event) { all = append(all, batch...) })
	got := make([][]*Event, watchers)
	var watching sync.WaitGroup
	for i := range watchers {
		w, err := c.Watch(0)
		if err != nil {
			t.Fatal(err)
		}
		if i >= watchers/2 {
			w.Where(ix, fmt.Sprint(i%values))
		}
		r := rand.New(rand.NewPCG(uint64(i), 1))
		woken := make(chan struct{}, 1)
		wake := func() {
			select {
			case woken <- struct{}{}:
			default:
			}
		}
		watching.Go(func() {
			defer w.Close()
			for last := int64(0); last < events; {
				batch, rev, err := w.Poll()
				if err != nil {
					t.Errorf("watcher %d at %d: %v", i, last, err)
					return
				}
				if n := len(batch); n > 1 && r.IntN(2) == 0 {
					keep := r.IntN(n)
					w.Return(batch[keep])
					got[i] = append(got[i], batch[:keep]...)
					continue
				}
				got[i] = append(got[i], batch...)
				if last = rev; last == events || len(batch) > 0 || !w.Sleep(wake) {
					continue
				}
				select {
				case <-woken:
				case <-t.Context().Done():
					return
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range events - values {
		put(v, fmt.Sprintf("ns/%d", r.IntN(20)), fmt.Sprint(r.IntN(values)))
		if r.IntN(10) == 0 {
			runtime.Gosched() // watchers fall asleep
		}
	}
	for n := range values { // so that each watcher receives an end
		put(v, fmt.Sprintf("ns/end%d", n), fmt.Sprint(n))
	}
	v.apply(store.WatchBatch{Revision: events})
	for n := range values { // a watcher that sleeps wakes for a last event with its value
		put(v, "ns/bell", fmt.Sprint(n))
	}
	watching.Wait()
	for i, mine := range got {
		value, at := fmt.Sprint(i%values), 0
		for _, e := range all {
			if e.Revision > events || i >= watchers/2 && ix.Value(e.Entry) != value &&
				(e.Prev == nil || ix.Value(e.Prev) != value) {
				continue
			}
			for at < len(mine) && mine[at] != e {
				if i < watchers/2 || ix.Value(mine[at].Entry) == value {
					t.Fatalf("watcher %d received an event of revision %d before %d", i, mine[at].Revision, e.Revision)
				}
				at++
			}
			if at == len(mine) {
				t.Fatalf("watcher %d has not received revision %d", i, e.Revision)
			}
			at++
		}
	}
	if n := c.wakers.count.Load(); n != 0 || len(c.wakers.all) != 0 || c.parked.count.Load() != 0 {
		t.Errorf("%d watchers are left in the list", n)
	}
}
