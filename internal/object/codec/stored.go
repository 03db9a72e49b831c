package codec

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// Stored is an object's JSON as the store keeps it, without a resourceVersion, and where that belongs. Finding the
// place while the object is written spares reading the bytes again to put the revision in.
type Stored struct {
	JSON []byte
	// Documents are the texts of the documents within it, nil if they are as in the JSON (see Verbatim).
	Documents []string

	at int
	// before and after surround the field in its place: with a comma if necessary, and with metadata if that is
	// missing.
	before, after string
}

// EncodeStored encodes obj, decoded JSON, without its metadata.resourceVersion. obj is not changed. It has metadata,
// or gets them with the revision. documents are the result's.
func EncodeStored(obj map[string]any, documents ...string) Stored {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	s := Stored{Documents: documents}
	start := e.open(obj)
	end := len(e.fields)
	dst := append(e.room[:0], '{')
	wrote := false
	for i := start; i < end; i++ {
		name, value := e.fields[i].name, e.fields[i].value
		meta, isObject := value.(map[string]any)
		if name == "metadata" && !isObject {
			continue // null; it is recreated below
		}
		if s.before == "" && strings.Compare(name, "metadata") > 0 {
			s.at, s.before, s.after = len(dst), `"metadata":{"resourceVersion":`, `},`
			if wrote {
				s.before, s.after = `,`+s.before, `}`
			}
		}
		if wrote {
			dst = append(dst, ',')
		}
		wrote = true
		dst = AppendString(dst, name)
		dst = append(dst, ':')
		if name == "metadata" {
			dst = s.metadata(dst, e, meta)
		} else {
			dst = e.value(dst, value)
		}
	}
	if s.before == "" {
		s.at, s.before, s.after = len(dst), `"metadata":{"resourceVersion":`, `}`
		if wrote {
			s.before = `,` + s.before
		}
	}
	e.close(start)
	dst = append(dst, '}')
	s.JSON = bytes.Clone(dst)
	if cap(dst) <= roomKept {
		e.room = dst
	}
	return s
}

// metadata writes meta and notes the place.
func (s *Stored) metadata(dst []byte, e *encoder, meta map[string]any) []byte {
	const field = "resourceVersion"
	start := e.open(meta)
	end := len(e.fields)
	dst = append(dst, '{')
	wrote := false
	for i := start; i < end; i++ {
		name := e.fields[i].name
		if name == field {
			continue
		}
		if wrote {
			dst = append(dst, ',')
		}
		wrote = true
		if s.before == "" && name > field {
			s.at, s.before, s.after = len(dst), `"`+field+`":`, `,`
		}
		dst = AppendString(dst, name)
		dst = append(dst, ':')
		dst = e.value(dst, e.fields[i].value)
	}
	if s.before == "" {
		s.at, s.before = len(dst), `"`+field+`":`
		if wrote {
			s.before = `,` + s.before
		}
	}
	e.close(start)
	return append(dst, '}')
}

// WithRevision returns the served JSON, with a resourceVersion.
func (s *Stored) WithRevision(revision int64) []byte {
	var buf [24]byte
	digits := strconv.AppendInt(append(buf[:0], '"'), revision, 10)
	digits = append(digits, '"')
	out := make([]byte, 0, len(s.JSON)+len(s.before)+len(digits)+len(s.after))
	out = append(out, s.JSON[:s.at]...)
	out = append(append(append(out, s.before...), digits...), s.after...)
	return append(out, s.JSON[s.at:]...)
}

// Is reports whether served equals WithRevision's result, and the documents are s's.
func (s *Stored) Is(served []byte, revision int64, documents ...string) bool {
	var buf [24]byte
	digits := strconv.AppendInt(append(buf[:0], '"'), revision, 10)
	digits = append(digits, '"')
	if len(served) != len(s.JSON)+len(s.before)+len(digits)+len(s.after) ||
		string(served[:s.at]) != string(s.JSON[:s.at]) || !slices.Equal(documents, s.Documents) {
		return false
	}
	rest := served[s.at:]
	for _, part := range []string{s.before, string(digits), s.after} {
		if string(rest[:len(part)]) != part {
			return false
		}
		rest = rest[len(part):]
	}
	return string(rest) == string(s.JSON[s.at:])
}

// open pushes the fields of m on the encoder's stack, sorted, and returns their start; close removes them.
func (e *encoder) open(m map[string]any) (start int) {
	start = len(e.fields)
	e.fields = slices.Grow(e.fields, len(m))
	for name, v := range m {
		e.fields = append(e.fields, field{name, v})
	}
	slices.SortFunc(e.fields[start:], func(a, b field) int { return strings.Compare(a.name, b.name) })
	return start
}

func (e *encoder) close(start int) {
	clear(e.fields[start:]) // the pool must retain nothing
	e.fields = e.fields[:start]
}
