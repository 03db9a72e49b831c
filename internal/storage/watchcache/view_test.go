package watchcache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
)

// create writes an object and returns its revision.
func create(t testing.TB, s *store.Store, key string, n int) int64 {
	t.Helper()
	rev, err := s.Create(testContext(t), key, object(key, n))
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func remove(t testing.TB, s *store.Store, key string, rev int64) int64 {
	t.Helper()
	rev, err := s.Delete(testContext(t), key, rev)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func describe(events []*Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%v %s/%s@%d ", e.Type, e.Collection.Prefix(), e.Entry.Key(), e.Entry.Revision)
	}
	return strings.TrimSpace(b.String())
}

// TestGarbage puts invalid keys into the store: they are not served and do no harm.
func TestGarbage(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := openStore(t)
	for _, key := range []string{"x", "a.b", "a.b/cs", "a.b/cs/", "a.b/cs/n/o/p", "a.b/cs//o", "a.b//o", "/x", "/",
		"//", "configmaps/a/b/c"} {
		if _, err := s.Create(ctx, key, []byte(`{"metadata":{}}`)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Create(ctx, "masterleases/10.0.0.1", []byte("k8s\x00\n\x0c\n\x02v1")); err != nil {
		t.Fatal(err)
	}
	v := New(s, Options{
		Log:     slog.New(slog.DiscardHandler),
		Foreign: func(prefix string) bool { return prefix == "masterleases" },
	})
	run(t, v)
	for _, c := range v.Collections() {
		if c.Snapshot().Len() != 0 {
			t.Errorf("collection %q has objects", c.Prefix())
		}
	}
}

func TestWatchEdges(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := openStore(t)
	r0 := create(t, s, "a.b/cs/n/0", 0)
	create(t, s, "a.b/cs/n/1", 0)
	v := newView(s)
	run(t, v)
	start := v.Revision()
	c := v.Collection("a.b/cs")
	if _, err := c.Watch(r0); !errors.Is(err, ErrExpired) {
		t.Errorf("watch from before the load: %v", err)
	}
	if _, err := v.Collection("new.group/never-seen").Watch(r0); !errors.Is(err, ErrExpired) {
		t.Errorf("watch of a new collection from before the load: %v", err)
	}
	now, err := c.Watch(start)
	if err != nil {
		t.Fatal(err)
	}
	quiet, err := v.Collection("new.group/never-seen").Watch(start)
	if err != nil {
		t.Fatal(err)
	}
	future, err := c.Watch(start + 2)
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if events, rev, err := now.Next(over); !errors.Is(err, context.Canceled) || rev != start || events != nil {
		t.Errorf("nothing yet: %v, %d, %v", events, rev, err)
	}
	for i := range 3 {
		create(t, s, fmt.Sprintf("a.b/cs/n/x%d", i), i)
	}
	if err := v.WaitFor(ctx, start+3); err != nil {
		t.Fatal(err)
	}
	if events, rev, err := now.Poll(); len(events) != 3 || rev != start+3 || err != nil {
		t.Errorf("%s, %d, %v", describe(events), rev, err)
	}
	if events, rev, err := future.Next(ctx); describe(events) != fmt.Sprintf("ADDED a.b/cs/n/x2@%d", start+3) ||
		rev != start+3 || err != nil {
		t.Errorf("%s, %d, %v", describe(events), rev, err)
	}
	// A watch without events learns the current revision.
	if events, rev, err := quiet.Poll(); len(events) != 0 || rev != start+3 || err != nil {
		t.Errorf("%s, %d, %v", describe(events), rev, err)
	}
	now.Close()
	if _, _, err := now.Next(ctx); err == nil {
		t.Error("a closed watcher goes on")
	}
	// WaitFor stops with its context, and leaves nothing behind.
	if err := v.WaitFor(over, start+1000); !errors.Is(err, context.Canceled) {
		t.Errorf("wait: %v", err)
	}
	if n := v.waiters.count.Load(); n != 0 {
		t.Errorf("%d waiters are left", n)
	}
}

// TestFreshOwn waits only for the writes of the process.
func TestFreshOwn(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	v := newView(s)
	if err := v.Load(testContext(t)); err != nil {
		t.Fatal(err)
	}
	late, cancel := context.WithCancel(testContext(t))
	cancel()
	if err := v.FreshOwn(late); err != nil {
		t.Errorf("nothing was written: %v", err)
	}
	create(t, s, "a.b/cs/n/0", 0)
	if err := v.FreshOwn(late); !errors.Is(err, context.Canceled) {
		t.Errorf("the view stands still: %v", err)
	}
	run(t, v)
	if err := v.FreshOwn(testContext(t)); err != nil || v.Collection("a.b/cs").Snapshot().Get("n", "0") == nil {
		t.Errorf("the write is not there: %v", err)
	}
}

// A watcher that does not keep up ends, and memory stays bounded.
func TestSlowWatcher(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := openStore(t)
	v := newView(s)
	run(t, v)
	c := v.Collection("a.b/cs")
	slow, err := c.Watch(v.Revision())
	if err != nil {
		t.Fatal(err)
	}
	start := v.Revision()
	big := fmt.Appendf(nil, `{"data":%q,"metadata":{}}`, strings.Repeat("x", 500<<10))
	rev, err := s.Create(ctx, "a.b/cs/n/o", big)
	for range 80 {
		if err != nil {
			t.Fatal(err)
		}
		rev, err = s.Update(ctx, "a.b/cs/n/o", big, rev)
	}
	if err := v.WaitFor(ctx, rev); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if events, _, err := slow.Next(ctx); !errors.Is(err, ErrExpired) {
			t.Errorf("%d events, %v", len(events), err)
		}
	}
	if _, err := c.Watch(start); !errors.Is(err, ErrExpired) {
		t.Errorf("watch from the start: %v", err)
	}
	if n := c.history.ring.Load().len(); n != historyFloor {
		t.Errorf("%d events are held", n)
	}
	w, err := c.Watch(rev - 5)
	if err != nil {
		t.Fatal(err)
	}
	if events, _, err := w.Next(ctx); len(events) != 5 || err != nil {
		t.Errorf("%d events, %v", len(events), err)
	}
}

// TestHistoryAges checks that history is released over time, without ending up-to-date watches.
func TestHistoryAges(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := openStore(t)
	var clock atomic.Int64
	v := New(s,
		Options{Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Unix(clock.Load(), 0) }})
	run(t, v)
	c := v.Collection("a.b/cs")
	start := v.Revision()
	old, err := c.Watch(start)
	if err != nil {
		t.Fatal(err)
	}
	var rev int64
	for i := range 1000 {
		rev = create(t, s, fmt.Sprintf("a.b/cs/n/%d", i), i)
	}
	if err := v.WaitFor(ctx, rev); err != nil {
		t.Fatal(err)
	}
	present, err := c.Watch(rev)
	if err != nil {
		t.Fatal(err)
	}
	v.sweep()
	if n := c.history.ring.Load().len(); n != 1000 {
		t.Errorf("%d young events are held", n)
	}
	clock.Add(int64(historyAge/time.Second) + 1)
	v.sweep()
	r := c.history.ring.Load()
	if r.len() != historyRest || len(r.slots) > 4*historyRest {
		t.Errorf("%d old events are held in %d slots", r.len(), len(r.slots))
	}
	if _, _, err := old.Poll(); !errors.Is(err, ErrExpired) {
		t.Errorf("a watcher of old events: %v", err)
	}
	if _, err := c.Watch(rev - historyRest); err != nil {
		t.Errorf("watch of what is held: %v", err)
	}
	if _, err := c.Watch(rev - historyRest - 1); !errors.Is(err, ErrExpired) {
		t.Errorf("watch of what is not held: %v", err)
	}
	last := create(t, s, "a.b/cs/n/last", 1)
	if events, _, err := present.Next(ctx); describe(events) != fmt.Sprintf("ADDED a.b/cs/n/last@%d", last) ||
		err != nil {
		t.Errorf("%s, %v", describe(events), err)
	}
}

// The store's history is gone before the view has read it: the view lists again.
func TestRelist(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := openStore(t)
	same := create(t, s, "a.b/cs/n/same", 1)
	changed := create(t, s, "a.b/cs/n/changed", 1)
	gone := create(t, s, "namespaces/gone", 1)
	v := newView(s)
	var mu sync.Mutex
	var received []*Event
	v.Subscribe(func(events []*Event) {
		mu.Lock()
		defer mu.Unlock()
		received = append(received, events...)
	})
	if err := v.Load(ctx); err != nil {
		t.Fatal(err)
	}
	if got, want := describe(received),
		fmt.Sprintf("ADDED a.b/cs/n/changed@%d ADDED a.b/cs/n/same@%d ADDED namespaces/gone@%d", changed, same,
			gone); got != want {
		t.Errorf("load: %s", got)
	}
	received = nil
	c := v.Collection("a.b/cs")
	kept := c.Snapshot().Get("n", "same")
	w, err := c.Watch(v.Revision())
	if err != nil {
		t.Fatal(err)
	}
	if changed, err = s.Update(ctx, "a.b/cs/n/changed", object("changed", 2), changed); err != nil {
		t.Fatal(err)
	}
	remove(t, s, "namespaces/gone", gone)
	remove(t, s, "a.b/cs/n/brief", create(t, s, "a.b/cs/n/brief", 1))
	last := create(t, s, "c.d/es/new", 1)
	if err := s.Compact(ctx, last); err != nil {
		t.Fatal(err)
	}

	runCtx, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- v.Run(runCtx) }()
	if err := v.WaitFor(ctx, last); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	if got, want := describe(received),
		fmt.Sprintf("MODIFIED a.b/cs/n/changed@%d DELETED namespaces/gone@%d ADDED c.d/es/new@%d", changed, last,
			last); got != want {
		t.Errorf("differences:\n got %s\nwant %s", got, want)
	}
	mu.Unlock()
	if _, _, err := w.Next(ctx); !errors.Is(err, ErrExpired) {
		t.Errorf("watch over the gap: %v", err)
	}
	if c.Snapshot().Get("n", "same") != kept {
		t.Error("an object that has not changed has another entry")
	}
	if w, err = c.Watch(last); err != nil {
		t.Fatal(err)
	}
	after := create(t, s, "a.b/cs/n/after", 1)
	if events, _, err := w.Next(ctx); describe(events) != fmt.Sprintf("ADDED a.b/cs/n/after@%d", after) || err != nil {
		t.Errorf("after the gap: %s, %v", describe(events), err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}

// TestSnapshotAtHorizon requests the next page of a list again and again while nothing changes in the collection: as in
// kube-apiserver, the page expires when the history of its time is compacted.
func TestSnapshotAtHorizon(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := openCompacted(t, time.Millisecond)
	v := newView(s)
	run(t, v)
	c := v.Collection("a.b/cs")
	last := create(t, s, "a.b/cs/n/1", 1)
	if err := v.WaitFor(ctx, last); err != nil {
		t.Fatal(err)
	}
	c.Pin(c.Snapshot())
	var now int64
	for i := 0; ; i++ { // until the test's context ends
		now = create(t, s, fmt.Sprintf("c.d/es/%d", i), 1)
		if _, err := c.SnapshotAt(ctx, last); errors.Is(err, ErrExpired) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if snap, err := c.SnapshotAt(ctx, now); err != nil || snap.Len() != 1 {
		t.Errorf("now: %+v, %v", snap, err)
	}
}

func TestSnapshotAt(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := openStore(t)
	r1 := create(t, s, "a.b/cs/n/1", 1)
	r2 := create(t, s, "a.b/cs/n/2", 1)
	r3 := remove(t, s, "a.b/cs/n/1", r1)
	for i := range 2 * pageSize { // more than a page of the store
		create(t, s, fmt.Sprintf("a.b/cs/m/%04d", i), 1)
	}
	v := newView(s)
	run(t, v)
	c := v.Collection("a.b/cs")
	for rev, want := range map[int64]int{r1 - 1: 0, r1: 1, r2: 2, r3: 1, r3 + 1: 2, r3 + 1500: 1501} { // from the store
		snap, err := c.SnapshotAt(ctx, rev)
		if err != nil || snap.Len() != want || snap.Revision != rev {
			t.Errorf("at %d: %+v, %v; want %d objects", rev, snap, err, want)
		}
	}
	pinned, err := c.SnapshotAt(ctx, r2)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Compact(ctx, r3+5); err != nil {
		t.Fatal(err)
	}
	if again, err := c.SnapshotAt(ctx, r2); err != nil || again != pinned {
		t.Errorf("retained snapshot: %v, %v", again, err)
	}
	if _, err := c.SnapshotAt(ctx, r3+2); !errors.Is(err, ErrExpired) {
		t.Errorf("compacted: %v", err)
	}
	// A future revision: returned when it is reached.
	next := v.Revision() + 1
	got := make(chan *Snapshot)
	go func() {
		snap, err := c.SnapshotAt(ctx, next)
		if err != nil {
			t.Error(err)
		}
		got <- snap
	}()
	create(t, s, "a.b/cs/n/3", 1)
	if snap := <-got; snap.Revision != next || snap.Get("n", "3") == nil {
		t.Errorf("in the future: %+v", snap)
	}
	for i := range 3 * pinLimit {
		c.Pin(&Snapshot{Revision: int64(i)})
	}
	if n := len(c.pins.list); n != pinLimit {
		t.Errorf("%d snapshots are retained", n)
	}
	c.pins.sweep(time.Now().Add(pinAge + time.Second))
	if n := len(c.pins.list); n != 0 {
		t.Errorf("%d old snapshots are retained", n)
	}
}

// TestShared runs two views of one etcd that another store also uses.
func TestShared(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	etcd := memory.New()
	server, err := store.Open(ctx,
		store.Config{Prefix: "/theirs", Etcd: etcd.Shared(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	open := func() (*store.Store, *View) {
		s, err := store.Open(ctx,
			store.Config{Etcd: etcd.Shared(), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		v := newView(s)
		run(t, v)
		return s, v
	}
	one, _ := open()
	_, two := open()
	for i := range 20 {
		rev := create(t, one, fmt.Sprintf("a.b/cs/n/%d", i), i)
		if i%5 == 0 {
			rev = create(t, server, fmt.Sprintf("a.b/cs/n/%d", i), i) // under their prefix
		}
		fresh, err := two.Fresh(ctx)
		if err != nil || fresh < rev {
			t.Fatalf("fresh: %d, %v; want %d", fresh, err, rev)
		}
		if snap := two.Collection("a.b/cs").Snapshot(); snap.Len() != i+1 || snap.Revision < rev {
			t.Errorf("the other replica sees %d of %d objects at %d", snap.Len(), i+1, snap.Revision)
		}
	}
}

// The end of the store ends the view.
func TestStoreCloses(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := openStore(t)
	v := newView(s)
	if err := v.Load(ctx); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- v.Run(ctx) }()
	rev := create(t, s, "a.b/cs/n/1", 1)
	if err := v.WaitFor(ctx, rev); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := <-ended; !errors.Is(err, store.ErrClosed) {
		t.Errorf("run: %v", err)
	}
}
