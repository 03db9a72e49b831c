package codec

import (
	"bytes"
	"unicode/utf8"
)

// Canonical reads JSON in AppendJSON's format, value by value and without building anything. Each method returns false
// for anything else: white space, unsorted fields, a number or an escape in another spelling. Such JSON may still be
// valid; then it must be decoded.
type Canonical struct {
	data []byte
	pos  int
}

// ReadCanonical begins at the start of data.
func ReadCanonical(data []byte) Canonical { return Canonical{data: data} }

// Done reports whether all data has been read.
func (c *Canonical) Done() bool { return c.pos == len(c.data) }

// Kind returns the first byte of the next value: { [ " t f n, or the sign or first digit of a number; 0 at the end.
func (c *Canonical) Kind() byte {
	if c.pos >= len(c.data) {
		return 0
	}
	return c.data[c.pos]
}

// Fields passes the next object. pass receives the name of each field as it is written (Plain reports whether it has no
// escapes) and passes its value.
func (c *Canonical) Fields(pass func(name []byte) bool) bool {
	if c.Kind() != '{' {
		return false
	}
	c.pos++
	var last []byte // not nil after the first field
	for c.Kind() != '}' {
		if last != nil && !c.comma() {
			return false
		}
		name, _, ok := c.Text()
		if !ok || c.Kind() != ':' || last != nil && !sorted(last, name) {
			return false
		}
		c.pos++
		if last = name; !pass(name) {
			return false
		}
	}
	c.pos++
	return true
}

// Items passes the next list; pass passes one item.
func (c *Canonical) Items(pass func() bool) bool {
	if c.Kind() != '[' {
		return false
	}
	c.pos++
	for first := true; c.Kind() != ']'; first = false {
		if !first && !c.comma() || !pass() {
			return false
		}
	}
	c.pos++
	return true
}

func (c *Canonical) comma() bool {
	if c.Kind() != ',' {
		return false
	}
	c.pos++
	return true
}

// Plain reports whether a name from Fields has no escapes.
func Plain(name []byte) bool { return bytes.IndexByte(name, '\\') < 0 }

// sorted reports whether a sorts before b, after unescaping.
func sorted(a, b []byte) bool {
	if Plain(a) && Plain(b) {
		return bytes.Compare(a, b) < 0
	}
	// Nearly all names with escapes are keys of list items in managedFields: k:{"name":"x"}.
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	at := 0
	for at < same {
		switch {
		case a[at] != '\\':
			at++
		case at+1 < len(a) && a[at+1] == 'u':
			at += 6
		default:
			at += 2
		}
	}
	switch {
	case at == same && same == len(a):
		return same < len(b)
	case at == same && same == len(b):
		return false
	case at == same && a[same] != '\\' && b[same] != '\\':
		return a[same] < b[same]
	}
	return unescaped(a) < unescaped(b)
}

// unescaped returns the value of a string that Text has passed.
func unescaped(raw []byte) string {
	quoted := make([]byte, 0, len(raw)+2)
	v, _ := DecodeJSON(append(append(append(quoted, '"'), raw...), '"'))
	text, _ := v.(string)
	return text
}

// Skip passes the next value.
func (c *Canonical) Skip() bool { return c.skip(0) }

func (c *Canonical) skip(depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch c.Kind() {
	case '{':
		return c.Fields(func([]byte) bool { return c.skip(depth + 1) })
	case '[':
		return c.Items(func() bool { return c.skip(depth + 1) })
	}
	return c.Scalar()
}

// Scalar passes a value that is neither an object nor a list.
func (c *Canonical) Scalar() bool {
	switch c.Kind() {
	case '"':
		_, _, ok := c.Text()
		return ok
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	}
	return c.integer()
}

func (c *Canonical) word(word string) bool {
	if end := c.pos + len(word); end <= len(c.data) && string(c.data[c.pos:end]) == word {
		c.pos = end
		return true
	}
	return false
}

// safeDigits is how many digits every int64 has room for.
const safeDigits = 18

// integer passes a whole number. It returns false for other numbers, which are rare.
func (c *Canonical) integer() bool {
	if c.Kind() == '-' {
		if c.pos++; c.Kind() == '0' {
			return false
		}
	}
	start := c.pos
	for c.pos < len(c.data) && '0' <= c.data[c.pos] && c.data[c.pos] <= '9' {
		c.pos++
	}
	digits := c.pos - start
	if digits == 0 || digits > safeDigits || digits > 1 && c.data[start] == '0' {
		return false
	}
	next := c.Kind()
	return next != '.' && next != 'e' && next != 'E'
}

// Text passes a string. text is the content between its quotes, never nil if ok; escaped reports whether it contains
// escapes.
func (c *Canonical) Text() (text []byte, escaped, ok bool) {
	if c.Kind() != '"' {
		return nil, false, false
	}
	start := c.pos + 1
	for i := start; i < len(c.data); {
		switch b := c.data[i]; {
		case b < utf8.RuneSelf && plain[b]:
			i++
		case b == '"':
			c.pos = i + 1
			return c.data[start:i:i], escaped, true
		case b == '\\':
			size := canonicalEscape(c.data[i+1:])
			if size == 0 {
				return nil, false, false
			}
			escaped = true
			i += 1 + size
		case b < utf8.RuneSelf: // AppendString escapes it
			return nil, false, false
		default:
			r, size := utf8.DecodeRune(c.data[i:])
			if r == utf8.RuneError && size == 1 || r == '\u2028' || r == '\u2029' {
				return nil, false, false
			}
			i += size
		}
	}
	return nil, false, false
}

// canonicalEscape returns the length of the escape, behind its backslash, that AppendString writes for some character;
// 0 if it writes that otherwise.
func canonicalEscape(s []byte) int {
	if len(s) == 0 {
		return 0
	}
	switch s[0] {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		return 1
	}
	if len(s) < 5 {
		return 0
	}
	switch string(s[:5]) {
	case "u003c", "u003e", "u0026", "u2028", "u2029":
		return 5
	}
	return 0
}
