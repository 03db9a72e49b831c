package codec

import (
	"bytes"
	"fmt"
)

// PartialMetadata returns the PartialObjectMetadata of an object, with its unchanged metadata. doc is the object's JSON
// as the server stores it, apiVersion "meta.k8s.io/v1" or "meta.k8s.io/v1beta1".
func PartialMetadata(doc []byte, apiVersion string) ([]byte, error) {
	meta, err := Field(doc, "metadata")
	if err != nil {
		return nil, fmt.Errorf("metadata of stored object: %w", err)
	}
	if meta == nil {
		meta = []byte("{}")
	}
	out := make([]byte, 0, len(meta)+len(apiVersion)+64)
	out = append(out, `{"kind":"PartialObjectMetadata","apiVersion":"`...)
	out = append(out, apiVersion...)
	out = append(out, `","metadata":`...)
	out = append(out, meta...)
	return append(out, '}'), nil
}

// Field returns the JSON of one field of the object doc, as a part of doc; nil if the field is absent. doc must be
// valid JSON written by the server. Nothing is decoded.
func Field(doc []byte, name string) ([]byte, error) {
	s := scanner{data: doc}
	s.space()
	if !s.take('{') {
		return nil, errNotObject
	}
	for {
		s.space()
		if s.take('}') {
			return nil, nil
		}
		s.take(',')
		s.space()
		key := s.value()
		s.space()
		if !s.take(':') || len(key) < 2 {
			return nil, errNotObject
		}
		s.space()
		value := s.value()
		if len(value) == 0 {
			return nil, errNotObject
		}
		if string(key[1:len(key)-1]) == name {
			return value, nil
		}
	}
}

// WithoutTypeMeta returns an object without its apiVersion and kind, for items in lists of built-in kinds: "{" and the
// parts are its JSON. doc is valid JSON with sorted keys and without whitespace, written by the server. The parts share
// doc.
func WithoutTypeMeta(doc []byte) (parts [3][]byte) {
	s := scanner{data: doc, pos: 1}
	n, from := 0, 1 // the number of complete parts, and the start of the next
	for n < 2 && s.pos < len(doc) && doc[s.pos] != '}' {
		start := s.pos
		key := s.value()
		s.take(':')
		s.value()
		s.take(',')
		if name := string(key); name == `"apiVersion"` || name == `"kind"` {
			parts[n], from = doc[from:start], s.pos
			n++
		} else if name > `"kind"` {
			break
		}
	}
	parts[n] = doc[from:]
	if n > 0 && string(parts[n]) == "}" { // nothing follows the omitted fields: remove the comma, too
		for i := range n {
			if len(parts[n-1-i]) > 0 {
				parts[n-1-i] = bytes.TrimSuffix(parts[n-1-i], []byte(","))
				break
			}
		}
	}
	return parts
}

// AppendUntyped appends the parts of WithoutTypeMeta as one object.
func AppendUntyped(dst, doc []byte) []byte {
	dst = append(dst, '{')
	for _, part := range WithoutTypeMeta(doc) {
		dst = append(dst, part...)
	}
	return dst
}

// scanner steps over valid JSON.
type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) take(c byte) bool {
	if s.pos < len(s.data) && s.data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

// value skips one value and returns it; it is empty at the end of data.
func (s *scanner) value() []byte {
	start, depth := s.pos, 0
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case '"':
			s.str()
		case '{', '[':
			depth++
			s.pos++
			continue
		case '}', ']':
			depth--
			s.pos++
		case ',', ':', ' ', '\t', '\n', '\r':
			s.pos++
			continue
		default:
			for s.pos < len(s.data) && !stops(s.data[s.pos]) {
				s.pos++
			}
		}
		if depth <= 0 {
			break
		}
	}
	return s.data[start:s.pos]
}

// str steps over a string.
func (s *scanner) str() {
	for s.pos++; s.pos < len(s.data); s.pos++ {
		s.pos = special(s.data, s.pos)
		if s.pos >= len(s.data) {
			return
		}
		switch s.data[s.pos] {
		case '"':
			s.pos++
			return
		case '\\':
			s.pos++
		}
	}
}

// stops reports whether c ends a number or a literal.
func stops(c byte) bool {
	switch c {
	case ',', ':', '}', ']', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}
