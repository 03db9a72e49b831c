package codec

import (
	"encoding/json"
	"math"
	"strconv"
	"sync"
	"unicode/utf8"
)

// AppendJSON appends the JSON of v, decoded JSON, to dst: byte for byte the output of encoding/json's Marshal, with
// sorted fields and <, > and & escaped. A json.RawMessage inside v must be compact and escaped the same way; it is
// copied. Values of other types go through encoding/json. Values that JSON cannot express (NaN, infinities) become
// null.
func AppendJSON(dst []byte, v any) []byte {
	e := encoders.Get().(*encoder)
	dst = e.value(dst, v)
	encoders.Put(e)
	return dst
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// encoder keeps the fields of open objects, innermost last, for sorting, and a buffer for results in a new slice: grown
// once, then copied at the exact size.
type encoder struct {
	fields []field
	room   []byte
}

// roomKept is how much room an encoder keeps. Larger objects are rare.
const roomKept = 256 << 10

type field struct {
	name  string
	value any
}

func (e *encoder) value(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case string:
		return AppendString(dst, v)
	case map[string]any:
		return e.object(dst, v)
	case []any:
		if v == nil {
			return append(dst, "null"...)
		}
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.value(dst, item)
		}
		return append(dst, ']')
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		return appendFloat(dst, v)
	case bool:
		return strconv.AppendBool(dst, v)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case int32:
		return strconv.AppendInt(dst, int64(v), 10)
	case json.RawMessage:
		return append(dst, v...)
	default:
		raw, err := json.Marshal(v)
		if err != nil {
			return append(dst, "null"...)
		}
		return append(dst, raw...)
	}
}

func (e *encoder) object(dst []byte, m map[string]any) []byte {
	if m == nil {
		return append(dst, "null"...)
	}
	start := e.open(m)
	end := len(e.fields)
	dst = append(dst, '{')
	for i := start; i < end; i++ {
		if i > start {
			dst = append(dst, ',')
		}
		// e.fields may move while the value is written; read it by index each time.
		dst = AppendString(dst, e.fields[i].name)
		dst = append(dst, ':')
		dst = e.value(dst, e.fields[i].value)
	}
	e.close(start)
	return append(dst, '}')
}

// appendFloat follows ES6 number formatting, as encoding/json does.
func appendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if n := len(dst); format == 'e' && n >= 4 && dst[n-4] == 'e' && (dst[n-3] == '-' || dst[n-3] == '+') &&
		dst[n-2] == '0' {
		dst[n-2] = dst[n-1] // e-09 becomes e-9
		dst = dst[:n-1]
	}
	return dst
}

const hexDigits = "0123456789abcdef"

// plain marks the ASCII bytes that need no escape in a string.
var plain = func() (t [utf8.RuneSelf]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return t
}()

// word returns 8 bytes as a little-endian number.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// plainWord reports whether all 8 bytes are plain. x-each&^x sets the highest bit of a byte if that byte of x is less
// than each's, and perhaps in bytes above it. Two characters that differ in one bit are compared at once.
func plainWord(w uint64) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	control := (w - 0x20*each) &^ w
	quote := w | 0x04*each ^ 0x26*each   // 0 is '"' or '&'
	bracket := w | 0x02*each ^ 0x3e*each // 0 is '<' or '>'
	backslash := w ^ '\\'*each
	return (w|control|(quote-each)&^quote|(bracket-each)&^bracket|(backslash-each)&^backslash)&high == 0
}

// AppendString appends s as a JSON string, escaped as encoding/json escapes it.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		if i+8 <= len(s) && plainWord(word(s[i:i+8])) {
			i += 8
			continue
		}
		c := s[i]
		if c < utf8.RuneSelf {
			if plain[c] {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\b':
				dst = append(dst, '\\', 'b')
			case '\f':
				dst = append(dst, '\\', 'f')
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, s[start:i]...)
			dst = append(dst, `\ufffd`...)
			start = i + 1
		case r == '\u2028' || r == '\u2029': // line separators in JavaScript
			dst = append(dst, s[start:i]...)
			dst = append(dst, '\\', 'u', '2', '0', '2', hexDigits[r&15])
			start = i + size
		}
		i += size
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
