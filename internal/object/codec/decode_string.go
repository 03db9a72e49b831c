package codec

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// special returns the first index from i on of a byte that is not plain ASCII inside a string: a quote, a backslash, a
// control character, or the start of a multi-byte rune. It examines eight bytes at a time.
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

// str decodes the string with its opening quote at pos.
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
				i = start // the rest may not be UTF-8
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

// escaped decodes the string that starts at start; its bytes before i are plain. Each invalid UTF-8 byte and each lone
// surrogate becomes U+FFFD.
func (d *decoder) escaped(start, i int) (string, bool) {
	out := append(make([]byte, 0, i-start+32), d.data[start:i]...)
	for i < len(d.data) {
		switch c := d.data[i]; {
		case c == '"':
			d.pos = i + 1
			return string(out), true
		case c == '\\':
			r, size := d.escape(i + 1)
			if size == 0 {
				return "", false
			}
			out = utf8.AppendRune(out, r)
			i += 1 + size
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

// escape returns the character of the escape with its letter at i, and the number of bytes from the letter on; 0 if the
// escape is invalid. Half a surrogate pair becomes the replacement character.
func (d *decoder) escape(i int) (r rune, size int) {
	if i >= len(d.data) {
		return 0, 0
	}
	switch c := d.data[i]; c {
	case '"', '\\', '/':
		return rune(c), 1
	case 'b':
		return '\b', 1
	case 'f':
		return '\f', 1
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case 'u':
		r, ok := d.hex(i + 1)
		switch {
		case !ok:
			return 0, 0
		case !utf16.IsSurrogate(r):
			return r, 5
		}
		if strings.HasPrefix(d.text[i+5:], `\u`) {
			if low, ok := d.hex(i + 7); ok {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					return pair, 11
				}
			}
		}
		return utf8.RuneError, 5
	}
	return 0, 0
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
