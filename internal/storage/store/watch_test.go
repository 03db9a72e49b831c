package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
	"github.com/bowsprit/bowsprit/internal/testing/etcdtest"
)

// collect reads a watch until it has passed rev.
func collect(t *testing.T, watch <-chan store.WatchBatch, rev int64) []store.Event {
	t.Helper()
	var all []store.Event
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
	forEachMode(t, func(t *testing.T, s *store.Store) {
		ctx, cancel := context.WithCancel(etcdtest.Context(t))
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
		want := []store.Event{
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
		if b := <-s.Watch(ctx, r2); !errors.Is(b.Err, store.ErrCompacted) {
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
	forEachMode(t, func(t *testing.T, s *store.Store) {
		ctx := etcdtest.Context(t)
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
	forEachMode(t, func(t *testing.T, s *store.Store) {
		ctx := etcdtest.Context(t)
		other := s.WithPrefix("/other/")
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

func TestCompactor(t *testing.T) {
	t.Parallel()
	ctx := etcdtest.Context(t)
	s := etcdtest.Open(t, embedded.Config{})
	create := func(key string) int64 {
		rev, err := s.Create(ctx, key, nil)
		if err != nil {
			t.Fatal(err)
		}
		return rev
	}
	tick := func() {
		if err := s.Tick(ctx); err != nil {
			t.Fatal(err)
		}
	}
	readable := func(rev int64) bool {
		_, err := s.Range(ctx, store.RangeOptions{Revision: rev})
		if err != nil && !errors.Is(err, store.ErrCompacted) {
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

func BenchmarkWatch(b *testing.B) {
	etcd := embedded.Config{Dir: b.TempDir() + "/etcd", NoSync: true}
	s, err := store.Open(b.Context(), store.Config{Etcd: etcd, Log: slog.New(slog.DiscardHandler)})
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
