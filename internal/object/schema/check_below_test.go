package schema

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestAnyBelow compares the search in sorted errors with a comparison of each error.
func TestAnyBelow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	path := func() string {
		var b strings.Builder
		b.WriteByte('a')
		for range r.IntN(5) {
			b.WriteByte("a.[-z"[r.IntN(5)])
		}
		return b.String()
	}
	found := 0
	for range 20_000 {
		errs := make(field.ErrorList, r.IntN(6))
		for i := range errs {
			errs[i] = &field.Error{Field: path()}
		}
		slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
		node := path()
		want := slices.ContainsFunc(errs, func(e *field.Error) bool {
			rest, ok := strings.CutPrefix(e.Field, node)
			return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
		})
		if got := anyBelow(errs, node); got != want {
			t.Fatalf("an error below %s: %v, want %v: %v", node, got, want, errs)
		}
		if want {
			found++
		}
	}
	if found == 0 {
		t.Error("no error was below a node")
	}
}
