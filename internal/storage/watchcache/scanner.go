package watchcache

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// object reads an object; field reads the value of each key (nil: any value). Keys are raw, without quotes.
func (s *scanner) object(field func(key []byte) error) error {
	if s.depth++; s.depth > maxDepth {
		return s.fail("nested too deep")
	}
	s.i++ // {
	s.space()
	if s.peek() == '}' {
		s.i++
		s.depth--
		return nil
	}
	var last []byte
	for first := true; ; first = false {
		from := s.i + 1
		if err := s.text(); err != nil {
			return err
		}
		key := s.data[from : s.i-1]
		if !first && !keysAscend(last, key) {
			s.out.canonical = false
		}
		last = key
		s.space()
		if s.peek() != ':' {
			return s.fail("in place of ':'")
		}
		s.i++
		s.space()
		var err error
		if field != nil {
			err = field(key)
		} else {
			err = s.value()
		}
		if err != nil {
			return err
		}
		s.space()
		switch s.peek() {
		case ',':
			s.i++
			s.space()
		case '}':
			s.i++
			s.depth--
			return nil
		default:
			return s.fail("in place of ',' or '}'")
		}
	}
}

func (s *scanner) array() error {
	if s.depth++; s.depth > maxDepth {
		return s.fail("nested too deep")
	}
	s.i++ // [
	s.space()
	if s.peek() == ']' {
		s.i++
		s.depth--
		return nil
	}
	for {
		if err := s.value(); err != nil {
			return err
		}
		s.space()
		switch s.peek() {
		case ',':
			s.i++
			s.space()
		case ']':
			s.i++
			s.depth--
			return nil
		default:
			return s.fail("in place of ',' or ']'")
		}
	}
}

func (s *scanner) value() error {
	switch c := s.peek(); {
	case c == '"':
		return s.text()
	case c == '{':
		return s.object(nil)
	case c == '[':
		return s.array()
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return s.fail("in place of a value")
}

func (s *scanner) text() error {
	if s.peek() != '"' {
		return s.fail("in place of a string")
	}
	data := s.data
	for i := s.i + 1; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			s.i = i + 1
			return nil
		case c == '\\':
			n := escapeLen(data[i:])
			if n == 0 {
				s.i = i
				return s.fail("in an escape")
			}
			i += n - 1
		case c < ' ':
			s.i = i
			return s.fail("in a string")
		}
	}
	s.i = len(data)
	return s.fail("in a string")
}

// escapeLen returns the length of the escape sequence at the start of data, 0 if it is invalid.
func escapeLen(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	switch data[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(data) < 6 {
			return 0
		}
		for _, c := range data[2:6] {
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.i++
	}
	switch c := s.peek(); {
	case c == '0':
		s.i++
	case '1' <= c && c <= '9':
		s.digits()
	default:
		return s.fail("in a number")
	}
	if s.peek() == '.' {
		s.i++
		if !s.digits() {
			return s.fail("in a number")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.i++
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		if !s.digits() {
			return s.fail("in a number")
		}
	}
	return nil
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.data) && '0' <= s.data[s.i] && s.data[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}

func (s *scanner) word(w string) error {
	if !bytes.HasPrefix(s.data[s.i:], []byte(w)) {
		return s.fail("in place of a value")
	}
	s.i += len(w)
	return nil
}

func (s *scanner) space() {
	for s.i < len(s.data) {
		switch s.data[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
			s.out.canonical = false
		default:
			return
		}
	}
}

// peek returns the next byte, 0 at the end; no byte of JSON outside of strings is 0.
func (s *scanner) peek() byte {
	if s.i < len(s.data) {
		return s.data[s.i]
	}
	return 0
}

func (s *scanner) fail(where string) error {
	if s.i >= len(s.data) {
		return errors.New("unexpected end of JSON")
	}
	return fmt.Errorf("unexpected %q %s at byte %d", s.data[s.i], where, s.i)
}

// keysAscend reports whether the raw key a sorts before b, in encoding/json's order of map keys.
//
// Keys of managedFields are full of escaped quotes (`k:{\"name\":\"a\"}`) but nearly always differ outside of an
// escape: then comparing bytes suffices, and nothing is decoded.
func keysAscend(a, b []byte) bool {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n == len(a) || n == len(b) {
		return len(a) < len(b)
	}
	// The longest escape is \uXXXX: a difference that far behind the last backslash is in plain text.
	if bytes.IndexByte(a[max(0, n-5):n+1], '\\') < 0 && b[n] != '\\' || n > 0 && a[n-1] == '"' && a[n] != '\\' &&
		b[n] != '\\' {
		return a[n] < b[n]
	}
	return unquote(a) < unquote(b)
}

// unquote returns the meaning of the raw content of a valid JSON string.
func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw)
	}
	var s string
	quoted := make([]byte, 0, len(raw)+2)
	quoted = append(append(append(quoted, '"'), raw...), '"')
	_ = json.Unmarshal(quoted, &s) // the scanner found it valid
	return s
}
