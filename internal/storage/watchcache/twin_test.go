package watchcache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
)

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func openStore(t testing.TB) *store.Store {
	t.Helper()
	return openCompacted(t, 0)
}

// openCompacted opens a store that compacts its history at the interval; 0 means after five minutes.
func openCompacted(t testing.TB, interval time.Duration) *store.Store {
	t.Helper()
	s, err := store.Open(testContext(t),
		store.Config{
			CompactInterval: interval,
			Etcd:            memory.New(),
			Log:             slog.New(slog.DiscardHandler),
		})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// run loads v and follows the store until the test ends.
func run(t testing.TB, v *View) {
	t.Helper()
	if err := v.Load(testContext(t)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- v.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

func newView(s *store.Store) *View { return New(s, Options{Log: slog.New(slog.DiscardHandler)}) }

// twin is the naive model of a view: a list of all changes, replayed for each state.
type twin struct {
	mu     sync.Mutex
	grown  sync.Cond
	log    []change
	latest int64
}

type change struct {
	rev    int64
	prefix string
	key    string
	n      int // the object's content; -1: deleted
}

func newTwin() *twin {
	tw := &twin{}
	tw.grown.L = &tw.mu
	return tw
}

func (tw *twin) add(c change) {
	tw.mu.Lock()
	defer tw.mu.Unlock()
	tw.log = append(tw.log, c)
	tw.latest = c.rev
	tw.grown.Broadcast()
}

// until returns the log up to rev, waiting until it is that long.
func (tw *twin) until(rev int64) []change {
	tw.mu.Lock()
	defer tw.mu.Unlock()
	for tw.latest < rev {
		tw.grown.Wait()
	}
	log := tw.log
	for len(log) > 0 && log[len(log)-1].rev > rev {
		log = log[:len(log)-1]
	}
	return log
}

// state returns the contents of a collection at rev.
func (tw *twin) state(prefix string, rev int64) map[string]change {
	m := map[string]change{}
	for _, c := range tw.until(rev) {
		if c.prefix != prefix {
			continue
		}
		if c.n < 0 {
			delete(m, c.key)
		} else {
			m[c.key] = c
		}
	}
	return m
}

func object(key string, n int) []byte {
	return fmt.Appendf(nil,
		`{"apiVersion":"a.b/v1","kind":"K","metadata":{"labels":{"l":"%d"},"name":%q,"uid":"u%d"},"n":%d}`, n%5, key, n,
		n)
}

// verify compares an entry with a change.
func verify(e *Entry, c change) error {
	var o struct {
		Metadata struct {
			ResourceVersion string
			UID             string
			Labels          map[string]string
		}
		N int
	}
	if err := json.Unmarshal(e.JSON(), &o); err != nil {
		return fmt.Errorf("%s: %w: %s", c.key, err, e.JSON())
	}
	n, _ := e.Field("n")
	switch {
	case e.Key() != c.key, e.Revision != c.rev, o.Metadata.ResourceVersion != fmt.Sprint(c.rev):
		return fmt.Errorf("got %s at %d with resourceVersion %s, want %s at %d", e.Key(), e.Revision,
			o.Metadata.ResourceVersion, c.key, c.rev)
	case c.n >= 0 &&
		(o.N != c.n || n != fmt.Sprint(c.n) || e.UID != fmt.Sprintf("u%d", c.n) || e.UID != o.Metadata.UID ||
			e.Labels["l"] != o.Metadata.Labels["l"]):
		return fmt.Errorf("%s: got %s, want content %d", c.key, e.JSON(), c.n)
	}
	return nil
}

func compare(s *Snapshot, want map[string]change, r *rand.Rand) error {
	if s.Len() != len(want) || s.Count("", "") != len(want) {
		return fmt.Errorf("at %d: %d objects (counted %d), want %d", s.Revision, s.Len(), s.Count("", ""), len(want))
	}
	after, left := "", len(want)
	for {
		limit := 1 + r.IntN(20)
		n := 0
		var err error
		s.Scan("", after, func(e *Entry) bool {
			if e.Key() <= after {
				err = fmt.Errorf("%s comes after %s", e.Key(), after)
			}
			after = e.Key()
			if bad := verify(e, want[e.Key()]); bad != nil {
				err = fmt.Errorf("at %d: %w", s.Revision, bad)
			}
			if s.Get(e.Namespace, e.Name) != e {
				err = fmt.Errorf("at %d: get %s finds another", s.Revision, e.Key())
			}
			n++
			return err == nil && n < limit
		})
		if err != nil {
			return err
		}
		if left -= n; s.Count("", after) != left {
			return fmt.Errorf("at %d: %d objects after %s, want %d", s.Revision, s.Count("", after), after, left)
		}
		if n < limit {
			break
		}
	}
	if left != 0 {
		return fmt.Errorf("at %d: %d objects were not visited", s.Revision, left)
	}
	for _, ns := range []string{"n0", "n1", "n1-x"} {
		got, wanted := 0, 0
		s.Scan(ns, "", func(e *Entry) bool {
			got++
			return e.Namespace == ns
		})
		for k := range want {
			if len(k) > len(ns) && k[:len(ns)+1] == ns+"/" {
				wanted++
			}
		}
		if got != wanted || s.Count(ns, "") != wanted {
			return fmt.Errorf("at %d: %d objects (counted %d) in %s, want %d", s.Revision, got, s.Count(ns, ""), ns,
				wanted)
		}
	}
	return nil
}

var prefixes = []string{"a.b/cs", "a.b/ds", "namespaces"}

// writer runs random operations on the store and records them in the twin.
func writer(ctx context.Context, s *store.Store, tw *twin, r *rand.Rand, ops int) error {
	latest := map[string]change{}
	for i := range ops {
		prefix := prefixes[r.IntN(len(prefixes))]
		key := fmt.Sprintf("o%d", r.IntN(60))
		if prefix != "namespaces" {
			key = []string{"n0", "n1", "n1-x"}[r.IntN(3)] + "/" + key
		}
		at := prefix + "/" + key
		c := change{prefix: prefix, key: key, n: i}
		was, exists := latest[at]
		var err error
		switch {
		case !exists:
			c.rev, err = s.Create(ctx, at, object(key, i))
		case r.IntN(3) > 0:
			c.rev, err = s.Update(ctx, at, object(key, i), was.rev)
		default:
			c.n = -1
			c.rev, err = s.Delete(ctx, at, was.rev)
		}
		if err != nil {
			return err
		}
		if delete(latest, at); c.n >= 0 {
			latest[at] = c
		}
		tw.add(c)
	}
	return nil
}

// watch follows a collection from a revision to last and compares its events with the twin.
func watch(ctx context.Context, c *Collection, tw *twin, from, last int64) error {
	w, err := c.Watch(from)
	if err != nil {
		return err
	}
	defer w.Close()
	state := tw.state(c.Prefix(), from)
	var got []*Event
	for seen := int64(0); seen < last; {
		limited, cancel := context.WithTimeout(ctx, 100*time.Millisecond) // only to check the progress
		events, rev, err := w.Next(limited)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if rev < seen {
			return fmt.Errorf("progress went back from %d to %d", seen, rev)
		}
		seen = rev
		got = append(got, events...)
	}
	var want []change
	for _, ch := range tw.until(last) {
		if ch.prefix == c.Prefix() && ch.rev > from {
			want = append(want, ch)
		}
	}
	if len(got) < len(want) {
		return fmt.Errorf("watch from %d: %d events, want %d", from, len(got), len(want))
	}
	for i, ch := range want {
		e := got[i]
		was, existed := state[ch.key]
		typ := Added
		switch {
		case ch.n < 0:
			typ = Deleted
		case existed:
			typ = Modified
		}
		if e.Type != typ || e.Revision != ch.rev || e.Collection != c || (e.Prev != nil) != existed {
			return fmt.Errorf("watch from %d: event %d is %v at %d, want %v at %d", from, i, e.Type, e.Revision, typ,
				ch.rev)
		}
		if err := verify(e.Entry, ch); err != nil {
			return err
		}
		if existed {
			if err := verify(e.Prev, was); err != nil {
				return err
			}
		}
		if delete(state, ch.key); ch.n >= 0 {
			state[ch.key] = ch
		}
	}
	return nil
}

func TestTwin(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s, tw := openStore(t), newTwin()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := func(i int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(i))) }
	if err := writer(ctx, s, tw, random(0), 300); err != nil {
		t.Fatal(err)
	}
	for _, c := range tw.log { // the second writer starts with an empty store
		if cur := tw.state(c.prefix, tw.latest)[c.key]; cur.rev == c.rev && c.n >= 0 {
			rev, err := s.Delete(ctx, c.prefix+"/"+c.key, c.rev)
			if err != nil {
				t.Fatal(err)
			}
			tw.add(change{rev, c.prefix, c.key, -1})
		}
	}
	v := newView(s)
	var received []*Event
	v.Subscribe(func(events []*Event) { received = append(received, events...) })
	run(t, v)
	start := v.Revision()
	if start != tw.latest {
		t.Fatalf("loaded at %d, want %d", start, tw.latest)
	}

	const ops = 1500
	last := start + ops
	var readers, watchers sync.WaitGroup
	done := make(chan struct{})
	for i := range 3 {
		r := random(10 + i)
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				c := v.Collection(prefixes[r.IntN(len(prefixes))])
				snap := c.Snapshot()
				if r.IntN(2) == 0 {
					rev, err := v.Fresh(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					if snap, err = c.SnapshotAt(ctx, start+r.Int64N(rev-start+1)); err != nil {
						t.Error(err)
						return
					}
				}
				if err := compare(snap, tw.state(c.Prefix(), snap.Revision), r); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 12 {
		r := random(20 + i)
		watchers.Go(func() {
			from := start + int64(i)*ops/12
			if i%3 > 0 { // otherwise the watch may start in the future
				if err := v.WaitFor(ctx, from+r.Int64N(ops/12)); err != nil {
					t.Error(err)
					return
				}
			}
			if err := watch(ctx, v.Collection(prefixes[i%len(prefixes)]), tw, from, last); err != nil {
				t.Error(err)
			}
		})
	}
	if err := writer(ctx, s, tw, random(1), ops); err != nil {
		t.Fatal(err)
	}
	watchers.Wait()
	close(done)
	readers.Wait()
	for i, e := range received {
		if i > 0 && e.Revision <= received[i-1].Revision {
			t.Errorf("subscriber got %d after %d", e.Revision, received[i-1].Revision)
		}
	}
	if len(received) != ops {
		t.Errorf("subscriber got %d events, want %d", len(received), ops)
	}
	// A second view loads the state that the first has followed.
	again := newView(s)
	if err := again.Load(ctx); err != nil {
		t.Fatal(err)
	}
	for _, p := range prefixes {
		if err := compare(again.Collection(p).Snapshot(), tw.state(p, last), random(99)); err != nil {
			t.Errorf("second load: %v", err)
		}
	}
}
