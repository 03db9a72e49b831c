package watchcache

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// The tree against a map, with frozen roots that must not change.
func TestTree(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		var tr tree
		want := map[string]*Entry{}
		type frozen struct {
			root *node
			want map[string]*Entry
		}
		var old []frozen
		span := []int{5, 100, 3000}[seed%3]
		for i := range 6000 {
			key := fmt.Sprintf("k%05d", r.IntN(span))
			if seed%4 == 0 && i < span {
				key = fmt.Sprintf("k%05d", i) // in order, as at load
			}
			grow := (i/1500)%2 == 0
			if r.IntN(4) > 0 == grow {
				e := &Entry{key: key, json: make([]byte, r.IntN(100))}
				if got := tr.put(e.key, e); got != want[key] {
					t.Fatalf("seed %d: put replaced %v, want %v", seed, got, want[key])
				}
				want[key] = e
			} else {
				if got := tr.remove(key); got != want[key] {
					t.Fatalf("seed %d: removed %v, want %v", seed, got, want[key])
				}
				delete(want, key)
			}
			if r.IntN(500) == 0 {
				old = append(old, frozen{tr.freeze(), maps.Clone(want)})
			}
		}
		for key := range maps.Clone(want) {
			tr.remove(key)
		}
		if tr.root != nil {
			t.Errorf("seed %d: something is left", seed)
		}
		for _, f := range old {
			checkTree(t, f.root, f.want)
		}
	}
}

func checkTree(t *testing.T, root *node, want map[string]*Entry) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(want))
	var got []string
	root.scan("", "", func(e *Entry) bool {
		got = append(got, e.key)
		return true
	})
	if !slices.Equal(got, keys) || root.len() != len(keys) {
		t.Fatalf("%d keys (%d), want %d", len(got), root.len(), len(keys))
	}
	bytes := 0
	for i, k := range keys {
		before, through := root.below(k), root.below(k+"\x00")
		if root.get(k) != want[k] || before != (weight{i, bytes}) ||
			through != (weight{i + 1, bytes + want[k].length()}) {
			t.Fatalf("%s: %v and %v, want %d, %d", k, before, through, i, bytes)
		}
		bytes += want[k].length()
		var first *Entry
		root.scan(k+"\x00", "", func(e *Entry) bool {
			first = e
			return false
		})
		if i+1 < len(keys) && first != want[keys[i+1]] || i+1 == len(keys) && first != nil {
			t.Fatalf("after %s comes %v", k, first)
		}
	}
	depth := -1
	var walk func(n *node, at int) int
	walk = func(n *node, at int) int {
		if len(n.entries) > maxEntries || len(n.keys) != len(n.entries) || n.kids != nil &&
			len(n.kids) != len(n.entries)+1 {
			t.Fatalf("node with %d entries and %d kids", len(n.entries), len(n.kids))
		}
		size, bytes := len(n.entries), 0
		for _, e := range n.entries {
			bytes += e.length()
		}
		for _, k := range n.kids {
			size += walk(k, at+1)
			bytes += k.bytes
		}
		if n.kids == nil {
			if depth >= 0 && depth != at {
				t.Fatalf("leaves at depth %d and %d", depth, at)
			}
			depth = at
		}
		if size != n.size || bytes != n.bytes {
			t.Fatalf("size %d of %d bytes, counted %d of %d", n.size, n.bytes, size, bytes)
		}
		return size
	}
	if root != nil {
		walk(root, 0)
	}
}

func BenchmarkTreePut(b *testing.B) {
	var tr tree
	for i := range 100_000 {
		key := fmt.Sprintf("ns/object-%06d", i)
		tr.put(key, &Entry{key: key})
	}
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprintf("ns/object-%06d", i*97)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ { // each change published
		key := keys[i%len(keys)]
		tr.put(key, &Entry{key: key})
		tr.freeze()
	}
}

// BenchmarkPage reads a page of 500 from the middle, and counts the rest.
func BenchmarkPage(b *testing.B) {
	for _, total := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprint(total), func(b *testing.B) {
			var t tree
			e := &Entry{}
			for i := range total {
				t.put(fmt.Sprintf("ns/object-%07d", i), e)
			}
			s := &Snapshot{root: t.freeze()}
			after := fmt.Sprintf("ns/object-%07d", total/2-1)
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				s.Scan("ns", after, func(*Entry) bool { n++; return n < 500 })
				if n != 500 || s.Count("ns", after) != total/2 {
					b.Fatal(n, s.Count("ns", after))
				}
			}
		})
	}
}
