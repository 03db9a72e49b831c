package watchcache

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// byN is the index of object's field n, with its calls counted.
func byN(calls *int) Index {
	return Index{Name: "n", Value: func(e *Entry) string {
		*calls++
		v, _ := FieldOf(e.JSON(), "spec.n")
		return v
	}}
}

func labelled(name, n string) []byte {
	if n == "" {
		return fmt.Appendf(nil, `{"apiVersion":"a.b/v1","kind":"K","metadata":{"name":%q},"spec":{}}`, name)
	}
	return fmt.Appendf(nil, `{"apiVersion":"a.b/v1","kind":"K","metadata":{"name":%q},"spec":{"n":%q}}`, name, n)
}

// put is a write as the store reports it; n is "-" for a deletion.
func put(v *View, key, n string) {
	rev := v.Revision() + 1
	e := store.Event{Key: "a.b/cs/" + key, Revision: rev, Created: 1}
	if e.Deleted = n == "-"; !e.Deleted {
		e.Value = labelled(key[strings.IndexByte(key, '/')+1:], n)
	}
	v.apply(store.WatchBatch{Revision: rev, Events: []store.Event{e}})
}

// TestIndexMatchesScan compares searches by an index with scans, while objects are created, changed and deleted.
func TestIndexMatchesScan(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 3))
		now := time.Unix(0, 0)
		v := New(nil, Options{Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }})
		c := v.Collection("a.b/cs")
		calls := 0
		ix := byN(&calls)
		// One value equals another plus a zero byte and more.
		values := []string{"", "a", "ab", "a\x00b", "b", "true"}
		var pinned []*Snapshot
		for i := range 3000 {
			key := fmt.Sprintf("n%d/o%03d", r.IntN(3), r.IntN(400))
			value := values[r.IntN(len(values))]
			if r.IntN(5) == 0 {
				value = "-"
			}
			put(v, key, value)
			switch {
			case i == 1500: // the store's history was lost
				c.replace(&tree{root: c.tree.root}, v.Revision(), nil, false)
			case i%700 == 699: // the view's history, too
				c.history.expire(v.Revision())
				now = now.Add(time.Minute)
			case i == 2200:
				now = now.Add(2 * indexAge)
				v.sweep()
				if c.indexes.list != nil {
					t.Fatal("an unused index is kept")
				}
			}
			if r.IntN(20) > 0 {
				continue
			}
			s := c.SnapshotBy(ix)
			if s.index != nil && r.IntN(5) == 0 {
				pinned = append(pinned, s)
			}
			for _, s := range append(slices.Clone(pinned), s) {
				checkFind(t, s, ix, values[1+r.IntN(len(values)-1)], []string{"", "n0", "n1", "none"}[r.IntN(4)],
					[]string{"", key}[r.IntN(2)])
			}
		}
		if len(pinned) == 0 {
			t.Fatal("there was never an index")
		}
	}
}

func checkFind(t *testing.T, s *Snapshot, ix Index, value, namespace, after string) {
	t.Helper()
	var got, want []*Entry
	keep := func(to *[]*Entry) func(*Entry) bool {
		return func(e *Entry) bool {
			if ix.Value(e) == value {
				*to = append(*to, e)
			}
			return true
		}
	}
	s.Scan(namespace, after, keep(&want))
	if s.Find(ix.Name, value, namespace, after, keep(&got)) && !slices.Equal(got, want) {
		t.Fatalf("at %d: %q in %q after %q: %d objects by index, %d by looking", s.Revision, value, namespace, after,
			len(got), len(want))
	}
}

// TestIndexCostsItsResult counts the work of a search: it is the same for few and many objects, and a change adds only
// its own entry.
func TestIndexCostsItsResult(t *testing.T) {
	t.Parallel()
	for _, total := range []int{3_000, 30_000} {
		v := New(nil, Options{Log: slog.New(slog.DiscardHandler)})
		c := v.Collection("a.b/cs")
		for i := range total {
			put(v, fmt.Sprintf("default/o%06d", i), fmt.Sprintf("b%d", i/30))
		}
		calls, visited := 0, 0
		ix := byN(&calls)
		for range indexUses {
			c.SnapshotBy(ix)
		}
		if calls != total {
			t.Errorf("%d objects: building the index looked %d times", total, calls)
		}
		calls = 0
		find := func() {
			visited = 0
			if !c.SnapshotBy(ix).Find(ix.Name, "b7", "", "", func(*Entry) bool { visited++; return true }) {
				t.Error("no index")
			}
		}
		if find(); calls != 0 || visited != 30 {
			t.Errorf("%d objects: a search looked into %d and visited %d", total, calls, visited)
		}
		put(v, "default/o000000", "b7")
		if find(); calls != 2 || visited != 31 { // the old and the new value
			t.Errorf("%d objects: after a change, a search looked into %d and visited %d", total, calls, visited)
		}
	}
}

// TestIndexesAreBounded uses more indexes than a collection keeps, and a collection too small for any.
func TestIndexesAreBounded(t *testing.T) {
	t.Parallel()
	_, c := filledView(indexAbove, 100)
	for i := range 3 * indexLimit {
		for range indexUses {
			if s := c.SnapshotBy(Index{
				Name: i, Value: (*Entry).Key,
			}); s.index != nil != (c.indexes.list[len(c.indexes.list)-1].uses >= indexUses) {
				t.Fatal("an index too early or too late")
			}
		}
	}
	if n := len(c.indexes.list); n != indexLimit {
		t.Errorf("%d indexes", n)
	}
	_, small := filledView(indexAbove-1, 100)
	for range 2 * indexUses {
		if small.SnapshotBy(Index{Name: 1, Value: (*Entry).Key}).index != nil {
			t.Error("an index of a few objects")
		}
	}
}

// BenchmarkFind is a search for 30 objects while others change.
func BenchmarkFind(b *testing.B) {
	for _, total := range []int{3_000, 300_000} {
		b.Run(fmt.Sprint(total), func(b *testing.B) {
			v := New(nil, Options{Log: slog.New(slog.DiscardHandler)})
			c := v.Collection("a.b/cs")
			for i := range total {
				put(v, fmt.Sprintf("default/o%06d", i), fmt.Sprintf("b%d", i/30))
			}
			calls := 0
			ix := byN(&calls)
			for range indexUses {
				c.SnapshotBy(ix)
			}
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				if c.SnapshotBy(ix).Find(ix.Name, "b7", "", "", func(*Entry) bool { n++; return true }); n != 30 {
					b.Fatal(n)
				}
			}
		})
	}
}
