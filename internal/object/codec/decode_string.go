package codec

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
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
