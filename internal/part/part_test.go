package part

import (
	"slices"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/object"
)

// Plugins are asked in the order of their positions, and in one position in that of the parts.
func TestChain(t *testing.T) {
	t.Parallel()
	got := ""
	for _, p := range Chain([]Part{
		{Admission: []Plugin{{Name: "last", At: AtLast}, {Name: "mutates", At: Mutating}}},
		{Admission: []Plugin{{Name: "first", At: AtFirst}, {Name: "validates", At: Validating}}},
		{Admission: []Plugin{{Name: "kind", At: AboutKinds}, {Name: "mutates too", At: Mutating}}},
	}) {
		got += p.Name + "; "
	}
	if want := "first; kind; mutates; mutates too; validates; last; "; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Two parts cannot have handlers of one name: the first stays, and the name is told.
func TestMerge(t *testing.T) {
	t.Parallel()
	var all Handlers
	updated := func(names ...string) Handlers {
		h := Handlers{Updated: map[string]func(old, now object.Object){}}
		for _, name := range names {
			h.Updated[name] = func(_, now object.Object) { now["heard"] = names[0] }
		}
		return h
	}
	if taken := all.Merge(updated("a", "b")); taken != nil {
		t.Errorf("taken: %q", taken)
	}
	taken := all.Merge(updated("c", "b", "a"))
	slices.Sort(taken)
	if got := strings.Join(taken, " "); got != "a b" {
		t.Errorf("taken: %q", got)
	}
	received := object.Object{}
	all.Updated["b"](nil, received)
	if received["heard"] != "a" || len(all.Updated) != 3 {
		t.Errorf("b is heard by the part of %v, of %d names", received["heard"], len(all.Updated))
	}
}
