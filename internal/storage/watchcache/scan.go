package watchcache

import (
	"bytes"
	"encoding/json"
	"errors"
)

// layout is the result of one pass over an object's bytes: the offsets of its parts.
type layout struct {
	canonical bool // keys sorted at every level, no whitespace
	metadata  bool // the object has a metadata object

	apiVersion, uid, labels, generation span // without quotes for strings, with braces for labels
	deleting                            bool // deletionTimestamp is a string

	// version is the value of metadata.resourceVersion; if it is missing, an empty span at the position of the key.
	version span
	// before and after surround the value if it is inserted, not replaced.
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

// scan checks that data is one JSON value, exactly like encoding/json.Valid, and returns its layout.
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

// beforeKey records that resourceVersion belongs before this key, unless its position is known. The scanner is at the
// key's value. The offset assumes no whitespace; it is used only if the object is canonical.
func (s *scanner) beforeKey(key []byte) {
	if s.out.version.from >= 0 {
		return
	}
	at := s.i - len(`"":`) - len(key)
	s.out.version = span{at, at}
	s.out.before, s.out.after = `"resourceVersion":`, `,`
}

// textField reads a value and records the content if it is a string.
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
