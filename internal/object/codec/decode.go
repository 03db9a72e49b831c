package codec

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	kjson "sigs.k8s.io/json"
)

// maxDepth is how deep arrays and objects may nest, as in encoding/json.
const maxDepth = 10000

// DecodeJSON decodes one JSON value: map[string]any, []any, string, bool, int64, float64 or nil.
//
// The result and the error's text equal sigs.k8s.io/json's UnmarshalCaseSensitivePreserveInts into an any. The last of
// duplicate fields wins. The strings of the result share one copy of data, which lives as long as any of them.
func DecodeJSON(data []byte) (any, error) {
	v, _, err := decode(data)
	return v, err
}

// decode also reports whether any object had a field twice.
func decode(data []byte) (v any, duplicates bool, err error) {
	d := decoders.Get().(*decoder)
	d.data, d.text = data, string(data)
	d.pos, d.depth, d.duplicates = 0, 0, false
	v, ok := d.document()
	duplicates = d.duplicates
	d.release(ok)
	if ok {
		return v, duplicates, nil
	}
	// Invalid input is rare: let the library produce the error, so that clients get the familiar text.
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &v); err != nil {
		return nil, false, err
	}
	return nil, false, fmt.Errorf("json: decoders disagree about %d bytes of input", len(data))
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// decoder is a recursive-descent parser. It collects the members of an array or object on a stack first, so that
// slices and maps are made once, at their final size.
type decoder struct {
	data       []byte
	text       string // the same bytes; strings of the result are parts of it
	pos        int
	depth      int
	keys       []string
	values     []any
	duplicates bool
}

// release returns the decoder to the pool. Popped elements are cleared already, so that the pool retains nothing.
func (d *decoder) release(ok bool) {
	if !ok {
		clear(d.keys)
		clear(d.values)
		d.keys, d.values = d.keys[:0], d.values[:0]
	}
	d.data, d.text = nil, ""
	decoders.Put(d)
}

func (d *decoder) document() (any, bool) {
	d.space()
	v, ok := d.value()
	if !ok {
		return nil, false
	}
	d.space()
	return v, d.pos == len(d.data)
}

func (d *decoder) space() {
	for d.pos < len(d.data) {
		switch d.data[d.pos] {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return
		}
	}
}

// value decodes the value that starts at pos and leaves pos behind it. false means bad input.
func (d *decoder) value() (any, bool) {
	if d.pos >= len(d.data) {
		return nil, false
	}
	switch c := d.data[d.pos]; c {
	case '{':
		m, ok := d.object()
		return m, ok
	case '[':
		return d.array()
	case '"':
		s, ok := d.str()
		return s, ok
	case 't':
		return true, d.literal("true")
	case 'f':
		return false, d.literal("false")
	case 'n':
		return nil, d.literal("null")
	default:
		if c == '-' || '0' <= c && c <= '9' {
			return d.number()
		}
		return nil, false
	}
}

func (d *decoder) literal(word string) bool {
	if !strings.HasPrefix(d.text[d.pos:], word) {
		return false
	}
	d.pos += len(word)
	return true
}

func (d *decoder) object() (map[string]any, bool) {
	if d.depth++; d.depth > maxDepth {
		return nil, false
	}
	d.pos++
	keys, values := len(d.keys), len(d.values)
	d.space()
	if d.pos < len(d.data) && d.data[d.pos] == '}' {
		d.pos++
		d.depth--
		return map[string]any{}, true
	}
	for {
		if d.pos >= len(d.data) || d.data[d.pos] != '"' {
			return nil, false
		}
		key, ok := d.str()
		if !ok {
			return nil, false
		}
		d.space()
		if d.pos >= len(d.data) || d.data[d.pos] != ':' {
			return nil, false
		}
		d.pos++
		d.space()
		v, ok := d.value()
		if !ok {
			return nil, false
		}
		d.keys = append(d.keys, key)
		d.values = append(d.values, v)
		more, ok := d.next('}')
		if !ok {
			return nil, false
		}
		if !more {
			break
		}
	}
	n := len(d.keys) - keys
	m := make(map[string]any, n)
	for i := range n {
		m[d.keys[keys+i]] = d.values[values+i]
	}
	if len(m) != n {
		d.duplicates = true
	}
	clear(d.keys[keys:])
	clear(d.values[values:])
	d.keys, d.values = d.keys[:keys], d.values[:values]
	d.depth--
	return m, true
}

func (d *decoder) array() (any, bool) {
	if d.depth++; d.depth > maxDepth {
		return nil, false
	}
	d.pos++
	values := len(d.values)
	d.space()
	if d.pos < len(d.data) && d.data[d.pos] == ']' {
		d.pos++
		d.depth--
		return []any{}, true
	}
	for {
		v, ok := d.value()
		if !ok {
			return nil, false
		}
		d.values = append(d.values, v)
		more, ok := d.next(']')
		if !ok {
			return nil, false
		}
		if !more {
			break
		}
	}
	out := make([]any, len(d.values)-values)
	copy(out, d.values[values:])
	clear(d.values[values:])
	d.values = d.values[:values]
	d.depth--
	return out, true
}

// next reads the comma before another member (true) or the closing bracket (false).
func (d *decoder) next(closing byte) (more, ok bool) {
	d.space()
	if d.pos >= len(d.data) {
		return false, false
	}
	c := d.data[d.pos]
	d.pos++
	if c == ',' {
		d.space()
		return true, true
	}
	return false, c == closing
}

func (d *decoder) number() (any, bool) {
	start := d.pos
	i := start
	if d.data[i] == '-' {
		i++
	}
	first := i
	i = d.digits(i)
	if i == first || d.data[first] == '0' && i > first+1 {
		return nil, false
	}
	integer := true
	if i < len(d.data) && d.data[i] == '.' {
		integer = false
		fraction := i + 1
		if i = d.digits(fraction); i == fraction {
			return nil, false
		}
	}
	if i < len(d.data) && (d.data[i] == 'e' || d.data[i] == 'E') {
		integer = false
		i++
		if i < len(d.data) && (d.data[i] == '+' || d.data[i] == '-') {
			i++
		}
		exponent := i
		if i = d.digits(i); i == exponent {
			return nil, false
		}
	}
	d.pos = i
	text := d.text[start:i]
	if integer {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, true
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}

func (d *decoder) digits(i int) int {
	for i < len(d.data) && '0' <= d.data[i] && d.data[i] <= '9' {
		i++
	}
	return i
}

const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)
