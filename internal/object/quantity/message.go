package quantity

import (
	"bytes"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Message measures the quantities of a protobuf message that is about to be decoded as the Go type t. The error is a
// *Refusal. A message that is malformed passes up to where it is: decoding ends there too.
func Message(t reflect.Type, data []byte) error {
	s := shapeOf(t)
	if s == nil {
		return nil
	}
	var m messages
	_, err := m.message(s, data)
	if err == nil {
		return nil
	}
	again := messages{tracks: true}
	if _, located := again.message(s, data); located != nil {
		return located
	}
	return err
}

// messages measures one message and its nested messages.
type messages struct {
	meter  meter
	tracks bool // keeps path
	path   []step
}

func (m *messages) enter(to step) {
	if m.tracks {
		m.path = append(m.path, to)
	}
}

func (m *messages) at() *field.Path { return (&walk{path: m.path}).at() }

// message measures the message of a shape. It is not ok if the message is malformed.
func (m *messages) message(s *shape, data []byte) (ok bool, err error) {
	var counts [maxMembers]int
	for len(data) > 0 {
		number, kind, content, size := next(data)
		if size < 0 {
			return false, nil
		}
		data = data[size:]
		if s.quantity {
			if number == 1 && kind == delimited && (len(content) > plainLength || bytes.ContainsAny(content, "eE")) {
				if _, err := m.meter.take(string(content), m.at); err != nil {
					return false, err
				}
			}
			continue
		}
		for i := range s.members {
			if f := &s.members[i]; f.number == number && kind == delimited {
				index := counts[i]
				counts[i]++
				if ok, err := m.member(f, content, data, index); !ok || err != nil {
					return ok, err
				}
			}
		}
	}
	return true, nil
}

// member measures one occurrence of a field. behind is the rest of the message, index counts the occurrences.
func (m *messages) member(f *member, content, behind []byte, index int) (ok bool, err error) {
	depth := len(m.path)
	defer func() { m.path = m.path[:depth] }()
	if f.name != "" {
		m.enter(step{name: f.name, index: -1})
	}
	s := f.shape
	switch {
	case s.values == nil:
		return m.message(s, content)
	case !s.isMap:
		m.enter(step{index: index})
		return m.message(s.values, content)
	}
	return m.entry(s.values, content[:len(content)+len(behind)], len(content))
}

// entry measures an entry of a map, a message of a key and a value: the first size bytes of data. The generated
// decoders look at no wire type there, and let a value go on behind the entry.
func (m *messages) entry(values *shape, data []byte, size int) (ok bool, err error) {
	depth := len(m.path)
	m.enter(step{index: -1, isKey: true})
	for at := 0; at < size; {
		tag, n := uvarint(data[at:])
		if n <= 0 {
			return false, nil
		}
		number := int32(tag >> 3) //nolint:gosec // as the generated decoders
		if number != 1 && number != 2 {
			n := skip(data[at:])
			if n < 0 {
				return false, nil
			}
			at += n
			continue
		}
		at += n
		length, n := uvarint(data[at:])
		if n <= 0 || length > uint64(len(data)-at-n) {
			return false, nil
		}
		at += n
		part := data[at : at+int(length)] //nolint:gosec // within data
		at += len(part)
		if number == 1 && m.tracks {
			m.path[depth].name = string(part)
		}
		if number == 1 {
			continue
		}
		if ok, err := m.message(values, part); !ok || err != nil {
			return ok, err
		}
	}
	return true, nil
}

// Wire types of protobuf.
const (
	varint, fixed64, delimited, groupStart, groupEnd, fixed32 = 0, 1, 2, 3, 4, 5
)

// next returns the first field of a message and its size with the tag, or a negative size if it is malformed. content
// is that of a delimited field. It accepts all that the generated decoders of the Kubernetes API accept.
func next(data []byte) (number int32, kind int, content []byte, size int) {
	tag, n := uvarint(data)
	if n <= 0 {
		return 0, 0, nil, -1
	}
	number, kind = int32(tag>>3), int(tag&7) //nolint:gosec // the generated decoders cut it in the same way
	if number <= 0 || kind == groupEnd {
		return 0, 0, nil, -1
	}
	if kind == delimited {
		length, m := uvarint(data[n:])
		if m <= 0 || length > uint64(len(data)-n-m) {
			return 0, 0, nil, -1
		}
		start := n + m
		return number, kind, data[start : start+int(length)], start + int(length) //nolint:gosec // within data
	}
	return number, kind, nil, skip(data)
}

// skip returns the size of the field at the beginning of data, a group with all within it.
func skip(data []byte) int {
	at, depth := 0, 0
	for at < len(data) {
		tag, n := uvarint(data[at:])
		if n <= 0 {
			return -1
		}
		at += n
		switch tag & 7 {
		case varint:
			_, n := uvarint(data[at:])
			if n <= 0 {
				return -1
			}
			at += n
		case fixed64:
			at += 8
		case delimited:
			length, n := uvarint(data[at:])
			if n <= 0 || length > uint64(len(data)) {
				return -1
			}
			at += n + int(length) //nolint:gosec // no more than data
		case groupStart:
			depth++
		case groupEnd:
			if depth == 0 {
				return -1
			}
			depth--
		case fixed32:
			at += 4
		default:
			return -1
		}
		if at > len(data) {
			return -1
		}
		if depth == 0 {
			return at
		}
	}
	return -1
}

// uvarint is binary.Uvarint, which refuses values over 64 bits; the generated decoders drop the excess bits.
func uvarint(data []byte) (v uint64, n int) {
	for shift := 0; shift < 64; shift += 7 {
		if n >= len(data) {
			return 0, -1
		}
		b := data[n]
		n++
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, n
		}
	}
	return 0, -1
}
