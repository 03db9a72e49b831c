package schema

import (
	"encoding/binary"
	"fmt"
	"math"
	"regexp"

	"github.com/bowsprit/bowsprit/internal/object/schema/format"
)

// interner makes equal parts of one schema share one Node. Definitions are repetitive: in typical ones half of the
// nodes are plain strings, and large ones embed the same pod template several times.
//
// Nodes with rules are not shared, because rules are compiled for their place, and neither are nodes with defaults that
// pruning may change, because pruning depends on the place, too.
type interner struct {
	nodes    map[string]*Node
	patterns map[string]compiledPattern
	key      []byte // scratch
	last     uint32 // the newest node's id
}

type compiledPattern struct {
	re   *regexp.Regexp
	size int
	bad  string // the error, if any
}

// pattern compiles text and returns its size, or the error.
func (s *interner) pattern(text string) (re *regexp.Regexp, size int, bad string) {
	p, ok := s.patterns[text]
	if !ok {
		re, err := regexp.Compile(text)
		p.re, p.size = re, format.PatternSize(text)
		if err != nil {
			p.bad = err.Error()
		}
		if s.patterns == nil {
			s.patterns = map[string]compiledPattern{}
		}
		s.patterns[text] = p
	}
	return p.re, p.size, p.bad
}

// node returns n or an equal node made before.
func (s *interner) node(n *Node) *Node {
	s.last++
	n.id = s.last
	if n.flags.has(unique) {
		return n
	}
	s.key = n.appendKey(s.key[:0])
	if same := s.nodes[string(s.key)]; same != nil {
		return same
	}
	if s.nodes == nil {
		s.nodes = map[string]*Node{}
	}
	s.nodes[string(s.key)] = n
	return n
}

// appendKey appends the identity of n: its keywords, and its children by id, since they are interned.
func (n *Node) appendKey(k []byte) []byte {
	k = binary.LittleEndian.AppendUint16(k, uint16(n.flags))
	k = append(k,
		bits(n.Nullable, n.AllowsAdditional, n.PreserveUnknown, n.Embedded, n.IntOrString, n.HasDefault,
			n.ExclusiveMinimum, n.ExclusiveMaximum))
	for _, text := range [...]string{n.Type, n.Format, n.ListType, n.MapType, n.Pattern} {
		k = appendText(k, text)
	}
	for _, list := range [...][]string{n.ListMapKeys, n.Required} {
		k = binary.AppendUvarint(k, uint64(len(list)))
		for _, text := range list {
			k = appendText(k, text)
		}
	}
	for _, i := range [...]*int64{n.MaxItems, n.MaxLength, n.MaxProps, n.MinItems, n.MinLength, n.MinProps} {
		k = append(k, bits(i != nil))
		if i != nil {
			k = binary.AppendVarint(k, *i)
		}
	}
	for _, f := range [...]*float64{n.Minimum, n.Maximum, n.MultipleOf} {
		k = append(k, bits(f != nil))
		if f != nil {
			k = binary.LittleEndian.AppendUint64(k, math.Float64bits(*f))
		}
	}
	if n.HasDefault || len(n.Enum) > 0 {
		k = appendText(k, fmt.Sprintf("%#v %#v", n.Default, n.Enum))
	}
	for _, list := range [...][]*Node{n.AllOf, n.AnyOf, n.OneOf, {n.Not, n.Items, n.AdditionalProperties}} {
		k = binary.AppendUvarint(k, uint64(len(list)))
		for _, child := range list {
			k = child.appendIdentity(k)
		}
	}
	for _, f := range n.fields {
		k = f.node.appendIdentity(appendText(k, f.name))
	}
	return k
}

func appendText(k []byte, text string) []byte {
	return append(binary.AppendUvarint(k, uint64(len(text))), text...)
}

// appendIdentity appends the id of n; nil has none.
func (n *Node) appendIdentity(k []byte) []byte {
	id := uint32(0)
	if n != nil {
		id = n.id
	}
	return binary.LittleEndian.AppendUint32(k, id)
}

func bits(flags ...bool) (b byte) {
	for i, f := range flags {
		if f {
			b |= 1 << i
		}
	}
	return b
}
