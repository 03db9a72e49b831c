package control

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// TestGraphMatchesModel changes random references and compares the graph, after each change, with a list of all
// objects.
func TestGraphMatchesModel(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		objects := new(watchcache.Collection)
		g := newGraph()
		model := map[location][]metav1.OwnerReference{}
		gone := map[string]bool{}
		waits := map[string]location{}
		uid := func() string { return fmt.Sprint("uid-", r.IntN(6)) }
		for range 1000 {
			switch r.IntN(8) {
			case 0:
				u := uid()
				depended := len(dependentsIn(model, u, false)) > 0
				if got := g.lose(u); got != depended {
					t.Fatalf("seed %d: losing %s: depended on %v, want %v", seed, u, got, depended)
				}
				gone[u] = depended
				delete(waits, u)
			case 1:
				u, at, wait := uid(), location{objects, fmt.Sprint("owner-", r.IntN(3))}, r.IntN(2) == 0
				g.wait(u, at, wait)
				delete(waits, u)
				if wait {
					waits[u] = at
				}
			default:
				at := location{objects, fmt.Sprint(r.IntN(60))}
				var refs []metav1.OwnerReference
				for range r.IntN(4) {
					ref := metav1.OwnerReference{UID: types.UID(uid()), Name: fmt.Sprint(r.IntN(2))}
					if block := r.IntN(3); block < 2 {
						ref.BlockOwnerDeletion = new(bool)
						*ref.BlockOwnerDeletion = block == 1
					}
					refs = append(refs, ref)
				}
				unblocked := map[location]bool{}
				g.set(at, model[at], refs, func(p location) { unblocked[p] = true })
				before := map[string]bool{}
				for u := range waits {
					before[u] = slices.Contains(dependentsIn(model, u, true), at)
				}
				if model[at] = refs; len(refs) == 0 {
					delete(model, at)
				}
				for u, owner := range waits {
					if before[u] && !slices.Contains(dependentsIn(model, u, true), at) && !unblocked[owner] {
						t.Fatalf("seed %d: %s waits for %s no more and was not told", seed, u, at.key)
					}
				}
				for u := range gone {
					if len(dependentsIn(model, u, false)) == 0 {
						delete(gone, u) // no dependent is left to check
					}
				}
			}
			for i := range 6 {
				u := fmt.Sprint("uid-", i)
				all, blocking := g.dependents(u)
				compare(t, all, dependentsIn(model, u, false))
				compare(t, blocking, dependentsIn(model, u, true))
				if g.gone(u) != gone[u] {
					t.Fatalf("seed %d: %s gone: %v, want %v", seed, u, g.gone(u), gone[u])
				}
				if len(all) == 0 && g.owners[u] != nil {
					t.Fatalf("seed %d: the graph remembers %s, which nobody names", seed, u)
				}
			}
		}
	}
}

// dependentsIn returns the objects that refer to an owner; if blocking, only by blocking references.
func dependentsIn(model map[location][]metav1.OwnerReference, uid string, blocking bool) (out []location) {
	for at, refs := range model {
		if slices.ContainsFunc(refs, func(ref metav1.OwnerReference) bool {
			return string(ref.UID) == uid && (!blocking || blocks(ref))
		}) {
			out = append(out, at)
		}
	}
	return out
}

func compare(t *testing.T, got, want []location) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d dependents, want %d", len(got), len(want))
	}
	for _, p := range got {
		if !slices.Contains(want, p) {
			t.Fatalf("got %s among the dependents", p.key)
		}
	}
}

// BenchmarkGraph has an owner get and lose 10,000 dependents.
func BenchmarkGraph(b *testing.B) {
	objects := new(watchcache.Collection)
	refs := []metav1.OwnerReference{{UID: "owner"}}
	b.ReportAllocs()
	for b.Loop() {
		g := newGraph()
		for i := range 10000 {
			g.set(location{objects, fmt.Sprint(i)}, nil, refs, nil)
		}
		for i := range 10000 {
			g.set(location{objects, fmt.Sprint(i)}, refs, nil, nil)
		}
	}
}
