package cel

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/test/oracle/fixture"
)

// TestMutations evaluates the rules of real definitions on objects with random flaws, also such that the value checks
// would have kept from the rules.
func TestMutations(t *testing.T) {
	for i, s := range samples(t) {
		t.Run(fmt.Sprintf("%s/%d", s.name, i), func(t *testing.T) {
			t.Parallel()
			subject := newSubject(t, s.name, s.props)
			subject.costs = false // some loop over maps
			failures := 0
			for seed := range uint64(fixture.Setting("ORACLE_MUTATIONS", 150)) {
				g := rand.New(rand.NewPCG(uint64(i), seed))
				mutant := func() map[string]any {
					obj := runtime.DeepCopyJSON(s.obj)
					for range 1 + g.IntN(4) {
						mutate(g, obj["spec"])
					}
					return obj
				}
				a, b := mutant(), mutant()
				failures += subject.compare(t, a, nil) + subject.compare(t, a, s.obj) + subject.compare(t, a,
					b) + subject.compare(t, a, a)
				if t.Failed() {
					return
				}
			}
			t.Logf("%d failures", failures)
		})
	}
}

// mutate changes a value below v.
func mutate(g *rand.Rand, v any) {
	values := []any{nil, "", "x", "*.example.com", int64(0), int64(-1), int64(443), 1.5, true, []any{},
		map[string]any{}, []any{"a", "a"}, map[string]any{"name": "x"}}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return
		}
		k := slices.Sorted(maps.Keys(v))[g.IntN(len(v))]
		switch g.IntN(6) {
		case 0:
			delete(v, k)
		case 1:
			v[k] = values[g.IntN(len(values))]
		default:
			mutate(g, v[k])
		}
	case []any:
		if len(v) == 0 {
			return
		}
		i := g.IntN(len(v))
		switch g.IntN(6) {
		case 0:
			v[i] = values[g.IntN(len(values))]
		case 1:
			v[i] = v[g.IntN(len(v))]
		default:
			mutate(g, v[i])
		}
	}
}
