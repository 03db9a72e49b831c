package schema

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// finding is something that a normalizer dropped or could not read. Its path is written from the inside out, while the
// walk returns, so that an object without findings costs nothing.
type finding struct {
	kind    findingKind
	path    string
	bracket bool // path starts with a subscript, so no dot comes before it

	value   any // of malformed
	problem string
}

type findingKind uint8

const (
	unknownField     findingKind = iota // not in the schema
	unknownMetaField                    // not in ObjectMeta
	malformed                           // not what every resource has
)

// step leads from a value to a child.
type step struct {
	key        string
	index      int
	list       bool // index is meant, not key
	additional bool // key is known through additionalProperties only
}

// under puts the findings since mark below s. Unknown fields are named as strict decoding does it, the rest as field.Path
// does it: with a subscript for what additionalProperties governs.
func (z *normalizer) under(mark int, s step) {
	for i := mark; i < len(z.findings); i++ {
		f := &z.findings[i]
		if !f.bracket {
			f.path = "." + f.path
		}
		f.bracket = s.list || s.additional && f.kind != unknownField
		switch {
		case s.list:
			f.path = "[" + strconv.Itoa(s.index) + "]" + f.path
		case f.bracket:
			f.path = "[" + s.key + "]" + f.path
		default:
			f.path = s.key + f.path
		}
	}
}

// finish sorts the findings of a whole walk.
func (z *normalizer) finish() {
	for _, f := range z.findings {
		switch f.kind {
		case unknownField:
			z.unknown = append(z.unknown, f.path)
		case unknownMetaField:
			z.unknownMeta = append(z.unknownMeta, f.path)
		case malformed:
			if z.err == nil {
				z.err = field.Invalid(field.NewPath(f.path), f.value, f.problem)
			}
		}
	}
	slices.Sort(z.unknown)
	slices.Sort(z.unknownMeta)
}
