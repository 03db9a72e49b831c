package watchcache

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// layout is what one pass over an object's bytes finds: where things are, as offsets.
type layout struct {
	canonical bool // keys sorted at every level, no whitespace
	metadata  bool // the object has a metadata object

	apiVersion, uid, labels, generation span // without quotes for strings, with braces for labels
	deleting                            bool // deletionTimestamp is a string

	// version is the value of metadata.resourceVersion; if there is none it is empty and lies where the key belongs.
	version span
	// before and after are what must surround the value if it is inserted and not replaced.
	before, after string
}

// span is a part of the bytes, from (inclusive) to (exclusive).
type span struct{ from, to int }

func (s span) of(data []byte) []byte { return data[s.from:s.to] }

// shift returns where s is after grow bytes were inserted at offset at.
func (s span) shift(at, grow int) span {
	if s.from >= at {
		return span{s.from + grow, s.to + grow}
	}
	return s
}

var errNoMetadata = errors.New("is not an object with metadata")

// scan checks that data is one JSON value, exactly as encoding/json.Valid does, and returns where its metadata is.
func scan(data []byte) (layout, error) {
	s := scanner{data: data}
	s.out.canonical = true
	err := s.root()
	return s.out, err
}

// normalize returns the same object with sorted keys and no whitespace.
func normalize(data []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// maxDepth is encoding/json's limit of nesting.
const maxDepth = 10000

type scanner struct {
	data  []byte
	i     int
	depth int
	out   layout
}

func (s *scanner) root() error {
	s.space()
	if s.peek() != '{' {
		s.out.metadata = false
		if err := s.value(); err != nil {
			return err
		}
	} else if err := s.object(s.rootField); err != nil {
		return err
	}
	s.space()
	if s.i < len(s.data) {
		return s.fail("after the value")
	}
	return nil
}

// rootField reads the value of a key of the object itself.
func (s *scanner) rootField(key []byte) error {
	switch string(key) {
	case "apiVersion":
		return s.textField(&s.out.apiVersion)
	case "metadata":
		if s.peek() != '{' {
			return s.value()
		}
		s.out.metadata = true
		s.out.version = span{-1, -1}
		if err := s.object(s.metadataField); err != nil {
			return err
		}
		if s.out.version.from < 0 { // it belongs behind the last key
			end := s.i - 1
			s.out.version = span{end, end}
			s.out.before, s.out.after = `,"resourceVersion":`, ``
			if s.data[end-1] == '{' {
				s.out.before = `"resourceVersion":`
			}
		}
		return nil
	}
	return s.value()
}

// metadataField reads the value of a key of metadata.
func (s *scanner) metadataField(key []byte) error {
	switch string(key) {
	case "uid":
		s.beforeKey(key)
		return s.textField(&s.out.uid)
	case "deletionTimestamp":
		s.out.deleting = s.peek() == '"'
	case "generation":
		from := s.i
		err := s.value()
		s.out.generation = span{from, s.i}
		return err
	case "labels":
		if s.peek() != '{' {
			return s.value()
		}
		from := s.i
		err := s.value()
		s.out.labels = span{from, s.i}
		return err
	case "resourceVersion":
		from := s.i
		err := s.value()
		s.out.version, s.out.before, s.out.after = span{from, s.i}, "", ""
		return err
	default:
		if string(key) > "resourceVersion" {
			s.beforeKey(key)
		}
	}
	return s.value()
}

// beforeKey notes that resourceVersion belongs before this key, if its place is not known yet. The scanner stands at the
// key's value; that the object has no whitespace matters only later, when it is canonical.
func (s *scanner) beforeKey(key []byte) {
	if s.out.version.from >= 0 {
		return
	}
	at := s.i - len(`"":`) - len(key)
	s.out.version = span{at, at}
	s.out.before, s.out.after = `"resourceVersion":`, `,`
}

// textField reads a value; if it is a string its content is noted.
func (s *scanner) textField(to *span) error {
	from := s.i
	text := s.peek() == '"'
	if err := s.value(); err != nil {
		return err
	}
	if text {
		*to = span{from + 1, s.i - 1}
	}
	return nil
}

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

// escapeLen returns the length of the escape sequence that data begins with, 0 if it is none.
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

// keysAscend tells whether the raw key a sorts before b, as encoding/json sorts the keys of a map.
//
// Keys of managedFields are full of escaped quotes (`k:{\"name\":\"a\"}`) and nearly always differ outside of an escape:
// then the bytes decide, and nothing is decoded.
func keysAscend(a, b []byte) bool {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n == len(a) || n == len(b) {
		return len(a) < len(b)
	}
	// The longest escape is \uXXXX: a difference that far behind the last backslash is in plain text.
	if bytes.IndexByte(a[max(0, n-5):n+1], '\\') < 0 && b[n] != '\\' || n > 0 && a[n-1] == '"' && a[n] != '\\' && b[n] != '\\' {
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
