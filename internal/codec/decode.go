package codec

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"
)

// maxDepth is how deep arrays and objects may nest, as in encoding/json.
const maxDepth = 10000

// DecodeJSON decodes one JSON value: map[string]any, []any, string, bool, int64, float64 or nil.
//
// The result and the error's text equal those of sigs.k8s.io/json's UnmarshalCaseSensitivePreserveInts into an any.
// Of duplicate fields the last wins. The strings of the result share one copy of data, which lives as long as any of them.
func DecodeJSON(data []byte) (any, error) {
	v, _, err := decode(data)
	return v, err
}

// decode also tells whether any object had a field twice.
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
	// Bad input is rare: let the library say what is wrong with it, so that clients read the text they know.
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &v); err != nil {
		return nil, false, err
	}
	return nil, false, fmt.Errorf("json: decoders disagree about %d bytes of input", len(data))
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// decoder is a recursive-descent parser. It collects the members of an array or object on a stack first, so that slices and
// maps are made once, at their final size.
type decoder struct {
	data       []byte
	text       string // the same bytes; what strings of the result are cut from
	pos        int
	depth      int
	keys       []string
	values     []any
	duplicates bool
}

// release gives the decoder back. What was popped is cleared already, so that the pool keeps nothing alive.
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

// special returns the first index from i on of a byte that is not plain ASCII inside a string: a quote, a backslash, a
// control character, or the start of a multi-byte rune. It looks at eight bytes at a time.
func special(data []byte, i int) int {
	for ; i+8 <= len(data); i += 8 {
		x := binary.LittleEndian.Uint64(data[i:])
		quote := x ^ ones*'"'
		slash := x ^ ones*'\\'
		hit := (x | (x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash) & tops
		if hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(data); i++ {
		if c := data[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return i
		}
	}
	return i
}

// str decodes the string whose opening quote is at pos.
func (d *decoder) str() (string, bool) {
	start := d.pos + 1
	i := start
	ascii := true
	for {
		i = special(d.data, i)
		if i >= len(d.data) {
			return "", false
		}
		switch c := d.data[i]; {
		case c == '"':
			d.pos = i + 1
			s := d.text[start:i]
			if !ascii && !utf8.ValidString(s) {
				return d.escaped(start, start)
			}
			return s, true
		case c == '\\':
			if !ascii {
				i = start // what is behind may not be UTF-8
			}
			return d.escaped(start, i)
		case c < ' ':
			return "", false
		default:
			ascii = false
			i++
		}
	}
}

// escaped decodes the string that starts at start and whose bytes before i are plain. Bytes that are not UTF-8 and lone
// surrogates become U+FFFD, one each.
func (d *decoder) escaped(start, i int) (string, bool) {
	out := append(make([]byte, 0, i-start+32), d.data[start:i]...)
	for i < len(d.data) {
		switch c := d.data[i]; {
		case c == '"':
			d.pos = i + 1
			return string(out), true
		case c == '\\':
			if i+1 >= len(d.data) {
				return "", false
			}
			i++
			switch c := d.data[i]; c {
			case '"', '\\', '/':
				out = append(out, c)
			case 'b':
				out = append(out, '\b')
			case 'f':
				out = append(out, '\f')
			case 'n':
				out = append(out, '\n')
			case 'r':
				out = append(out, '\r')
			case 't':
				out = append(out, '\t')
			case 'u':
				r, ok := d.hex(i + 1)
				if !ok {
					return "", false
				}
				i += 4
				if utf16.IsSurrogate(r) {
					pair := rune(utf8.RuneError)
					if strings.HasPrefix(d.text[i+1:], `\u`) {
						if low, ok := d.hex(i + 3); ok {
							pair = utf16.DecodeRune(r, low)
						}
					}
					if pair != utf8.RuneError {
						i += 6
					}
					r = pair
				}
				out = utf8.AppendRune(out, r)
			default:
				return "", false
			}
			i++
		case c < ' ':
			return "", false
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		default:
			r, size := utf8.DecodeRuneInString(d.text[i:])
			out = utf8.AppendRune(out, r)
			i += size
		}
	}
	return "", false
}

// hex reads the four hexadecimal digits at i.
func (d *decoder) hex(i int) (rune, bool) {
	if i+4 > len(d.data) {
		return 0, false
	}
	var r rune
	for _, c := range d.data[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
