//go:build moving

package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// collect reads a watch until it has passed rev.
func collect(t *testing.T, watch <-chan WatchBatch, rev int64) []Event {
	t.Helper()
	var all []Event
	var last int64
	for last < rev {
		b, ok := <-watch
		if !ok || b.Err != nil {
			t.Fatalf("watch ended at %d of %d: %v", last, rev, b.Err)
		}
		if b.Revision < last {
			t.Errorf("batch of %d after %d", b.Revision, last)
		}
		for _, e := range b.Events {
			if e.Revision < last || e.Revision > b.Revision {
				t.Errorf("event of %d in the batch of (%d, %d]", e.Revision, last, b.Revision)
			}
			last = e.Revision
		}
		last = b.Revision
		all = append(all, b.Events...)
	}
	return all
}

func TestWatch(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, s *Store) {
		ctx, cancel := context.WithCancel(testContext(t))
		defer cancel()
		early := s.Watch(ctx, 2) // etcd begins with revision 1
		r1, err := s.Create(ctx, "a/1", []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		r2, err := s.Update(ctx, "a/1", []byte("y"), r1)
		if err != nil {
			t.Fatal(err)
		}
		r3, err := s.Delete(ctx, "a/1", r2)
		if err != nil {
			t.Fatal(err)
		}
		want := []Event{
			{Key: "a/1", Value: []byte("x"), Revision: r1, Created: r1},
			{Key: "a/1", Value: []byte("y"), Revision: r2, Created: r1},
			{Key: "a/1", Revision: r3, Deleted: true},
		}
		if got := collect(t, early, r3); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("early: %v", got)
		}
		if got := collect(t, s.Watch(ctx, r2), r3); fmt.Sprint(got) != fmt.Sprint(want[1:]) {
			t.Errorf("from the second on: %v", got)
		}
		// A watch of the future starts there.
		future := s.Watch(ctx, r3+3)
		for i := range 4 {
			if _, err := s.Create(ctx, fmt.Sprintf("b/%d", i), nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := collect(t, future, r3+4); len(got) != 2 || got[0].Key != "b/2" {
			t.Errorf("future: %v", got)
		}
		if err := s.Compact(ctx, r3); err != nil {
			t.Fatal(err)
		}
		if b := <-s.Watch(ctx, r2); !errors.Is(b.Err, ErrCompacted) {
			t.Errorf("watch of compacted history: %+v", b)
		}
		cancel()
		for b := range early {
			if b.Err != nil {
				t.Errorf("after the context's end: %v", b.Err)
			}
		}
	})
}

// Many changes, more than etcd's channels hold, reach a receiver that reads slowly, without a gap.
func TestWatchBusy(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, s *Store) {
		ctx := testContext(t)
		start, err := s.Revision(ctx)
		if err != nil {
			t.Fatal(err)
		}
		watch := s.Watch(ctx, start+1)
		const writers, each = 8, 100
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					if _, err := s.Create(ctx, fmt.Sprintf("k/%d-%d", w, i), make([]byte, 20<<10)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait() // nothing has been read yet
		got := collect(t, watch, start+writers*each)
		if len(got) != writers*each {
			t.Fatalf("%d events", len(got))
		}
		for i, e := range got {
			if e.Revision != start+1+int64(i) {
				t.Fatalf("event %d has revision %d", i, e.Revision)
			}
		}
	})
}

// TestWatchProgress checks that writes outside of the prefix, which advance the revision too, do not leave a waiter for
// it waiting for ever.
func TestWatchProgress(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, s *Store) {
		ctx := testContext(t)
		other := &Store{
			prefix: "/other/", backend: s.backend, client: s.client, leases: newLeases(),
			background: background{done: make(chan struct{})},
		}
		start, err := s.Revision(ctx)
		if err != nil {
			t.Fatal(err)
		}
		watch := s.Watch(ctx, start+1)
		for i := range 3 {
			rev, err := other.Create(ctx, fmt.Sprintf("k/%d", i), nil)
			if err != nil {
				t.Fatal(err)
			}
			s.RequestProgress(rev)
			if got := collect(t, watch, rev); len(got) != 0 {
				t.Errorf("events of another prefix: %v", got)
			}
		}
	})
}

// TestWatchResumes checks that a watch continues without a gap after etcd goes away and comes back at the same address
// with the same data.
func TestWatchResumes(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	server := open(t, Embedded{ListenClientURL: "http://127.0.0.1:0"})
	dir, url := server.backend.(*local).etcd.Config().Dir, server.ClientURL()
	s := connect(t, server)
	r1, err := s.Create(ctx, "k/1", nil)
	if err != nil {
		t.Fatal(err)
	}
	watch := s.Watch(ctx, r1)
	if got := collect(t, watch, r1); len(got) != 1 {
		t.Errorf("%v", got)
	}
	server.Close()
	hurry, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	if _, err := s.Create(hurry, "k/lost", nil); !errors.Is(err, ErrUncertain) {
		t.Errorf("write without a server: %v", err)
	}
	cancel()
	server = open(t, Embedded{Dir: dir, ListenClientURL: url})
	r2, err := server.Create(ctx, "k/2", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := collect(t, watch, r2); len(got) != 1 || got[0].Key != "k/2" {
		t.Errorf("after the restart: %v", got)
	}
}

func TestCompactor(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := open(t, Embedded{})
	create := func(key string) int64 {
		rev, err := s.Create(ctx, key, nil)
		if err != nil {
			t.Fatal(err)
		}
		return rev
	}
	tick := func() {
		if err := s.tick(ctx); err != nil {
			t.Fatal(err)
		}
	}
	readable := func(rev int64) bool {
		_, err := s.Range(ctx, RangeOptions{Revision: rev})
		if err != nil && !errors.Is(err, ErrCompacted) {
			t.Fatal(err)
		}
		return err == nil
	}
	r1 := create("1")
	r2 := create("2")
	tick()
	r3 := create("3")
	if !readable(r1) {
		t.Error("history is gone at the first tick")
	}
	tick()
	if readable(r1) || !readable(r2) || !readable(r3) {
		t.Error("the second tick must cut at the first one's revision")
	}
	if got := s.Horizon(); got != r2 {
		t.Errorf("horizon %d, want %d", got, r2)
	}
	tick()
	tick() // nothing has happened
	if !readable(r3) {
		t.Error("the present is gone")
	}
}

// TestHistoryIsBounded checks that with a bound the older half of history is compacted when there is twice as much,
// once the watch has received it; but not if other programs may read it.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	const most = 20
	for _, test := range []struct {
		name         string
		with         Embedded
		watched, cut bool
	}{
		{"bounded", Embedded{History: most}, true, true},
		{"not watched", Embedded{History: most}, false, false},
		{"not bounded", Embedded{}, true, false},
		{"reached by others", Embedded{History: most, ListenClientURL: "http://127.0.0.1:0"}, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx := testContext(t)
			s := open(t, test.with)
			first, err := s.Create(ctx, "k", nil)
			if err != nil {
				t.Fatal(err)
			}
			var seen <-chan WatchBatch
			if test.watched {
				seen = s.Watch(ctx, 1)
			}
			last := first
			for n := 0; n < 20*most; n++ {
				if last, err = s.Update(ctx, "k", nil, last); err != nil {
					t.Fatal(err)
				}
				for rev := int64(0); test.watched && rev < last; {
					b := <-seen
					if rev = b.Revision; b.Err != nil {
						t.Fatal(b.Err)
					}
				}
				_, err := s.Range(ctx, RangeOptions{Revision: first})
				if err != nil && !errors.Is(err, ErrCompacted) {
					t.Fatal(err)
				}
				if err == nil {
					continue
				}
				if began := first - 1; !test.cut || last-began < 2*most { // when the store was opened
					t.Fatalf("%d is gone at %d", first, last)
				}
				if _, err := s.Range(ctx, RangeOptions{Revision: last - most + 1}); err != nil {
					t.Fatal(err)
				}
				if s.Horizon() != 0 {
					t.Error("the horizon is that of the interval")
				}
				return
			}
			if test.cut {
				t.Errorf("%d is there at %d", first, last)
			}
		})
	}
}

// TestShared checks that no caller gets the result of a request that began before its call.
func TestShared(t *testing.T) {
	t.Parallel()
	var clock, flights atomic.Int64
	s := &shared{fetch: func(context.Context) (int64, error) {
		flights.Add(1)
		return clock.Load(), nil
	}}
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range 500 {
				before := clock.Add(1)
				if got, err := s.get(context.Background()); err != nil || got < before {
					t.Errorf("got %d, %v; before the call it was %d", got, err, before)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d requests for %d callers", flights.Load(), 32*500)

	// Callers that arrive during a request share the next.
	block, started := make(chan struct{}), make(chan struct{}, 8)
	s = &shared{fetch: func(context.Context) (int64, error) {
		started <- struct{}{}
		<-block
		return 1, nil
	}}
	wg.Go(func() { s.get(context.Background()) })
	<-started
	var queued sync.WaitGroup
	for range 10 {
		queued.Add(1)
		wg.Go(func() {
			s.mu.Lock()
			if s.next == nil {
				s.next = &flight{done: make(chan struct{})}
			}
			s.mu.Unlock()
			queued.Done()
			s.get(context.Background())
		})
	}
	queued.Wait()
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.get(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gave up: %v", err)
	}
	close(block)
	wg.Wait()
	if len(started) > 1 {
		t.Errorf("%d more requests for those who waited, want 1", len(started))
	}
}

func BenchmarkWatch(b *testing.B) {
	s, err := Open(b.Context(),
		Config{Embedded: &Embedded{Dir: b.TempDir() + "/etcd", NoSync: true}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	rev, _ := s.Create(b.Context(), "k", nil)
	watch := s.Watch(b.Context(), rev+1)
	for b.Loop() { // a write and its arrival
		if rev, err = s.Update(b.Context(), "k", nil, rev); err != nil {
			b.Fatal(err)
		}
		for (<-watch).Revision < rev {
		}
	}
}
