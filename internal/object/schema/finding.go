package schema

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// finding is a value that a normalizer dropped or could not read. Its path is written from the inside out, while the
// walk returns, so that an object without findings costs nothing; it is written backwards, so that deep paths are not
// copied at each level.
type finding struct {
	kind    findingKind
	path    []byte // reversed, relative to the current value
	bracket bool   // the path starts with a subscript, without a dot before it

	value   any // for malformed
	problem string
}

type findingKind uint8

const (
	unknownField     findingKind = iota // not in the schema
	unknownMetaField                    // not in ObjectMeta
	malformed                           // invalid in every resource
)

// step leads from a value to a child.
type step struct {
	key        string
	index      int
	list       bool // the step uses index, not key
	additional bool // key is known only through additionalProperties
}

// find notes a finding at the field key of the object at hand.
func (z *normalizer) find(f finding, key string) {
	f.path = appendBackwards(make([]byte, 0, 64), key)
	z.findings = append(z.findings, f)
}

// under moves the findings since mark below s. Unknown fields are named as in strict decoding, others as in field.Path:
// with a subscript for keys under additionalProperties.
func (z *normalizer) under(mark int, s step) {
	for i := mark; i < len(z.findings); i++ {
		f := &z.findings[i]
		if !f.bracket {
			f.path = append(f.path, '.')
		}
		f.bracket = s.list || s.additional && f.kind != unknownField
		switch {
		case s.list:
			f.path = append(appendBackwards(append(f.path, ']'), strconv.Itoa(s.index)), '[')
		case f.bracket:
			f.path = append(appendBackwards(append(f.path, ']'), s.key), '[')
		default:
			f.path = appendBackwards(f.path, s.key)
		}
	}
}

func appendBackwards(path []byte, text string) []byte {
	for i := len(text) - 1; i >= 0; i-- {
		path = append(path, text[i])
	}
	return path
}

// finish sorts the findings of a whole walk.
func (z *normalizer) finish() {
	for _, f := range z.findings {
		slices.Reverse(f.path)
		switch f.kind {
		case unknownField:
			z.unknown = append(z.unknown, string(f.path))
		case unknownMetaField:
			z.unknownMeta = append(z.unknownMeta, string(f.path))
		case malformed:
			if z.err == nil {
				z.err = field.Invalid(field.NewPath(string(f.path)), f.value, f.problem)
			}
		}
	}
	slices.Sort(z.unknown)
	slices.Sort(z.unknownMeta)
}
