package reshape

import (
	"fmt"
	"slices"

	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// claims reports whether a rule has the place p of a side, and whether a rule has a place below it.
func (w *weaver) claims(of side, p Path) (here, below bool) {
	for _, c := range w.claimed[of] {
		here = here || slices.Equal(c.path, p)
		below = below || c.path.below(p)
	}
	return here, below
}

// cover compares the fields of two objects at a path and adds a transfer or a nest for each difference without a rule.
// One schema may be nil.
func (w *weaver) cover(a, b *schema.Node, path Path) {
	if w.nodes++; w.nodes > maxNodes {
		w.tooLarge(w.path)
		return
	}
	for _, name := range names(a, b) {
		if w.root && len(path) == 0 && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		p := append(slices.Clone(path), name)
		var x, y *schema.Node
		if a != nil {
			x = a.Properties[name]
		}
		if b != nil {
			y = b.Properties[name]
		}
		w.field(x, y, p)
	}
	if w.root && len(path) == 0 {
		w.annotations()
	}
}

// field covers one field; x or y is nil if a version lacks it.
func (w *weaver) field(x, y *schema.Node, p Path) {
	claimedX, belowX := w.claims(first, p)
	claimedY, belowY := w.claims(second, p)
	if claimedX {
		x = nil
	}
	if claimedY {
		y = nil
	}
	switch {
	case x == nil && y == nil:
	case x != nil && y != nil && !belowX && !belowY && differ(x, y, "") == "":
	case x != nil && y != nil:
		w.both(x, y, p, belowX || belowY)
	case belowX || belowY:
		w.cover(x, y, p)
	default:
		w.alone(x, y, p)
	}
}

// both covers a field with different shapes in the two versions.
func (w *weaver) both(x, y *schema.Node, p Path, rules bool) {
	at := join(w.path, p.String())
	switch {
	case plain(x) && plain(y):
		w.cover(x, y, p)
	case rules:
		w.problem(at, "rules below it need an object that declares its fields in both versions")
	case sameButNull(x, y):
		w.level.transfers = append(w.level.transfers, w.transfer(at, end(p, x), end(p, y), withoutNull(x, y)))
	default:
		if into := w.shape(x, y, inside{path: at}); into != nil {
			w.level.nests = append(w.level.nests, &nest{slot: [2]slot{newSlot(p, x), newSlot(p, y)}, into: into})
		}
	}
}

// sameButNull reports whether only one of two schemas of one shape allows null.
func sameButNull(x, y *schema.Node) bool {
	if x.Nullable == y.Nullable {
		return false
	}
	z := *y
	z.Nullable = x.Nullable
	return differ(x, &z, "") == ""
}

// withoutNull drops a null where only one version allows it.
func withoutNull(x, y *schema.Node) *operation {
	to := func(n *schema.Node) func(in, out []any) error {
		return func(in, out []any) error {
			if out[0] = in[0]; in[0] == nil && !n.Nullable {
				out[0] = missing{}
			}
			return nil
		}
	}
	return &operation{forward: to(y), backward: to(x)}
}

// alone covers a field that only one version has. Its values go to the stash.
func (w *weaver) alone(x, y *schema.Node, p Path) {
	n, of := x, first
	if n == nil {
		n, of = y, second
	}
	if sensitive(n) {
		w.problem(join(w.path, p.String()), fmt.Sprintf("the sensitive field is in version %s only, and the stash is "+
			"not masked: add the field to the other version, or a rule", w.names[of]))
		return
	}
	t := &transfer{operation: nothing, at: join(w.path, p.String())}
	t.slots[of] = []slot{newSlot(p, n)}
	w.level.transfers = append(w.level.transfers, t)
}

// annotations keeps labels and annotations that only one version has in a field. An object of the other version may
// have one with the same name, without a meaning.
func (w *weaver) annotations() {
	for of, claims := range w.claimed {
		for _, c := range claims {
			if !c.path.meta() {
				continue
			}
			if here, _ := w.claims(1-side(of), c.path); !here {
				t := &transfer{operation: nothing, at: c.path.String()}
				t.slots[1-side(of)] = []slot{newSlot(c.path, text)}
				w.level.transfers = append(w.level.transfers, t)
			}
		}
	}
}

// vessels collects the objects on the way to the places of rules: moving their last field must not leave an empty
// object, nor lose one.
func (w *weaver) vessels(a, b *schema.Node) {
	seen := map[string]bool{}
	for of := range 2 {
		for _, t := range w.level.transfers {
			for _, p := range t.slots[of] {
				w.vesselsOf(p.path, a, b, seen)
			}
		}
		for _, n := range w.level.nests {
			if n.slot[first].key != n.slot[second].key {
				w.vesselsOf(n.slot[of].path, a, b, seen)
			}
		}
	}
	slices.SortStableFunc(w.level.vessels, func(x, y vessel) int { return len(y.path) - len(x.path) })
}

func (w *weaver) vesselsOf(path Path, a, b *schema.Node, seen map[string]bool) {
	for end := len(path) - 1; end > 0; end-- {
		p := path[:end]
		if seen[p.String()] {
			return
		}
		seen[p.String()] = true
		v := vessel{slot: newSlot(p, nil), meta: w.root && p.meta()}
		if v.meta && end == 1 {
			continue // metadata itself stays
		}
		for of, n := range []*schema.Node{a, b} {
			for _, name := range p {
				if n != nil {
					n = n.Properties[name]
				}
			}
			claimed, _ := w.claims(side(of), p)
			v.in[of] = n != nil && !claimed
			v.nullable[of] = n != nil && n.Nullable
		}
		w.level.vessels = append(w.level.vessels, v)
	}
}
