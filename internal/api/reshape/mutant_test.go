package reshape

import (
	"testing"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// mutants are faults of a compiled plan. Each changes a level and reports whether it could.
var mutants = map[string]func(l *level) bool{
	"a rule that loses values is not checked": func(l *level) bool {
		for _, t := range l.transfers {
			if !t.exact && len(t.slots[first]) == 1 && len(t.slots[second]) == 1 {
				t.operation = &operation{forward: t.forward, backward: t.backward, exact: true}
				return true
			}
		}
		return false
	},
	"a field of one version is given up": func(l *level) bool {
		for _, t := range l.transfers {
			if t.operation == nothing {
				t.operation = &operation{forward: none, backward: none, lossy: true}
				return true
			}
		}
		return false
	},
	"a rule is missing": func(l *level) bool {
		for i, t := range l.transfers {
			if t.exact {
				l.transfers = append(l.transfers[:i:i], l.transfers[i+1:]...)
				return true
			}
		}
		return false
	},
	"the inverse is the rule itself": func(l *level) bool {
		for _, t := range l.transfers {
			if !t.exact && len(t.slots[first]) == 1 && len(t.slots[second]) == 1 {
				t.operation = &operation{forward: t.forward, backward: t.forward, exact: true}
				return true
			}
		}
		return false
	},
	"empty objects stay or go": func(l *level) bool {
		had := len(l.vessels) > 0
		l.vessels = nil
		return had
	},
	"the contents of a list are not converted": func(l *level) bool {
		for _, n := range l.nests {
			if _, ok := n.into.(*listShape); ok {
				n.into = keep{}
				return true
			}
		}
		return false
	},
}

// TestMutants checks that the round trips of TestRoundTrip find each fault.
func TestMutants(t *testing.T) {
	for name, change := range mutants {
		caught, tried := false, 0
		for seed := uint64(0); seed < 300 && !caught; seed++ {
			p, of, _ := pair(t, seed)
			if !change(p.steps[0].level) {
				continue
			}
			tried++
			g := NewGenerator(seed)
			for i := 0; i < 40 && !caught; i++ {
				from, to := "v1", "v2"
				if i%2 == 1 {
					from, to = to, from
				}
				if obj := g.Object(of[from]); obj != nil {
					_, returned, err := p.trip(obj, from, to)
					caught = err != nil || !codec.Equal(any(returned), any(obj))
				}
			}
		}
		if !caught {
			t.Errorf("%s: no round trip of %d plans found it", name, tried)
		}
	}
}
