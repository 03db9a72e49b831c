package reshape

import (
	"slices"
	"strings"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// Bounds of the search for moved fields.
const (
	maxLone    = 500 // fields of one version only
	leastScore = 3
)

// pairing relates a field that only the first version has to one that only the second has.
type pairing struct {
	from, to *lone
	score    int
	why      string
}

// match proposes rules for fields that moved or got another name: the pairs with the most similar names first. A field
// with two equally good partners gets no rule.
func (d *differences) match() {
	if len(d.alone[first]) > maxLone || len(d.alone[second]) > maxLone {
		d.open = append(d.open, "too many fields differ to relate them")
		return
	}
	var all []pairing
	for _, x := range d.alone[first] {
		for _, y := range d.alone[second] {
			if score, why := d.alike(x, y); score >= leastScore {
				all = append(all, pairing{x, y, score, why})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b pairing) int { return b.score - a.score })
	for i, p := range all {
		if p.from.taken || p.to.taken || ambiguous(all, i) {
			continue
		}
		if d.relate(p) {
			p.from.taken, p.to.taken = true, true
		}
	}
}

// ambiguous reports whether another pair with a field of pair i is as good.
func ambiguous(all []pairing, i int) bool {
	for j, q := range all {
		p := all[i]
		if j != i && q.score == p.score && (q.from == p.from) != (q.to == p.to) && !q.from.taken && !q.to.taken {
			return true
		}
	}
	return false
}

// relate proposes the rule of a pair, and reports whether there is one.
func (d *differences) relate(p pairing) bool {
	x, y := p.from.node, p.to.node
	from, to := p.from.path, p.to.path
	if differ(x, y, "") == "" {
		d.rules = append(d.rules, Proposed{object.Object{"move": from.String(), "to": to.String()}, p.why})
		return true
	}
	if unit := unitOf(from, to); unit != "" && x.Type == "integer" && y.Type == "string" {
		d.unit(from, to, unit, from)
		return true
	}
	if unit := unitOf(to, from); unit != "" && x.Type == "string" && y.Type == "integer" {
		d.unit(from, to, unit, to)
		return true
	}
	return d.changed(from, x, to, y, p.why)
}

// unit proposes a rule between a number of units and a text with a unit.
func (d *differences) unit(from, to Path, unit string, number Path) {
	verb := "duration"
	if strings.HasSuffix(unit, "i") {
		verb = "quantity"
	}
	d.rules = append(d.rules, Proposed{object.Object{verb: from.String(), "to": to.String(), "unit": unit},
		number.String() + " has the unit in its name"})
}

// unitWords are the ends of names of numbers, with their units.
var unitWords = map[string]string{
	"seconds": "s", "second": "s", "sec": "s", "secs": "s", "minutes": "m", "minute": "m", "hours": "h", "hour": "h",
	"milliseconds": "ms", "millis": "ms", "ms": "ms", "kib": "Ki", "mib": "Mi", "gib": "Gi",
}

// unitOf returns the unit in the name of a number, if the rest of the name is the name of the other field.
func unitOf(number, other Path) string {
	rest, _ := strings.CutPrefix(strings.ToLower(last(number)), strings.ToLower(last(other)))
	return unitWords[rest]
}

func last(p Path) string { return p[len(p)-1] }

// alike returns how likely two fields have one meaning, and the reason.
func (d *differences) alike(x, y *lone) (score int, why string) {
	a, b := last(x.path), last(y.path)
	near := 0
	if slices.Equal(x.path[:len(x.path)-1], y.path[:len(y.path)-1]) {
		near = 1
	}
	same := differ(x.node, y.node, "") == ""
	switch {
	case unitOf(x.path, y.path) != "" || unitOf(y.path, x.path) != "":
		return 8 + near, "the name without the unit"
	case a == b && same:
		return 8, "the field moved"
	case (a+"s" == b || b+"s" == a || a+"es" == b || b+"es" == a) && listOf(x.node, y.node):
		return 7 + near, "the plural of the name"
	case !same:
		return 0, ""
	case strings.EqualFold(a, b):
		return 7 + near, "the same name in other letters"
	}
	common := 0
	for _, w := range words(a) {
		if slices.Contains(words(b), w) {
			common++
		}
	}
	if common > 0 {
		return 2 + common + near, "a similar name and the same shape"
	}
	if near == 1 && d.only(first, x) && d.only(second, y) {
		return leastScore, "the only field of this shape in each version: check the meaning"
	}
	return 0, ""
}

// listOf reports whether one of two schemas is a list of the other's values.
func listOf(x, y *schema.Node) bool {
	return y.Type == "array" && y.Items != nil && differ(x, y.Items, "") == "" ||
		x.Type == "array" && x.Items != nil && differ(x.Items, y, "") == ""
}

// only reports whether no other field of its object that the other version lacks has the shape of l.
func (d *differences) only(of side, l *lone) bool {
	for _, other := range d.alone[of] {
		if other != l && slices.Equal(other.path[:len(other.path)-1], l.path[:len(l.path)-1]) &&
			differ(other.node, l.node, "") == "" {
			return false
		}
	}
	return true
}
