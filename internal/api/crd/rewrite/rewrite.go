// Package rewrite edits the bytes of a definition in place of decoding it: nearly all of a definition is schemas, which
// are the same in v1 and v1beta1.
package rewrite

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	kjson "sigs.k8s.io/json"
)

// ErrUnusual means that the bytes are in no form that can be edited, and must be decoded.
var ErrUnusual = errors.New("unusual definition")

// Entry is a field of an object in the bytes of a definition. Start is an offset in the bytes.
type Entry struct {
	Key   string // as JSON
	Start int    // of the key
	Value []byte

	from, next int // of the value, and of its end
}

// Rewriter edits a definition's bytes by replacing parts of them.
type Rewriter struct {
	raw   []byte
	dec   *jsontext.Decoder
	parts []part

	rename  func(columns any)
	first   []byte // the first version's name, as JSON
	removed bool   // the last part extends to the next key
}

// part replaces the bytes from (inclusive) to (exclusive).
type part struct {
	from, to int
	with     []byte
}

// New returns a rewriter of a definition. rename renames the paths of the columns of a version, a list.
func New(raw []byte, rename func(columns any)) *Rewriter {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	return &Rewriter{raw: raw, dec: dec, rename: rename}
}

// Replace replaces the bytes from (inclusive) to (exclusive).
func (r *Rewriter) Replace(from, to int, with []byte) {
	r.parts = append(r.parts, part{from, to, with})
}

// Remove removes a field other than the last of its object, with the comma behind it.
func (r *Rewriter) Remove(m Entry) {
	r.Replace(m.Start, m.next, nil)
	r.removed = true
}

// Edit decodes a value, an object, lets f change it, and replaces it.
func (r *Rewriter) Edit(m Entry, f func(map[string]any)) error {
	var v map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(m.Value, &v); err != nil || v == nil {
		return ErrUnusual
	}
	f(v)
	with, err := json.Marshal(v)
	r.Replace(m.from, m.next, with)
	return err
}

// Bytes returns the definition with all replacements.
func (r *Rewriter) Bytes() []byte {
	slices.SortStableFunc(r.parts, func(a, b part) int { return a.from - b.from })
	size := len(r.raw)
	for _, p := range r.parts {
		size += len(p.with)
	}
	out, done := make([]byte, 0, size), 0
	for _, p := range r.parts {
		out = append(append(out, r.raw[done:p.from]...), p.with...)
		done = p.to
	}
	return append(out, r.raw[done:]...)
}

// First returns the name of the first version, as JSON, once Definition has read the versions.
func (r *Rewriter) First() []byte { return r.first }

// Definition calls f with the fields of spec, "versions" last, and renames the paths of the versions' columns.
func (r *Rewriter) Definition(f func(Entry) error) error {
	err := r.object(func(m Entry) error {
		if m.Key != `"spec"` {
			return r.skip(&m)
		}
		return r.object(func(m Entry) error {
			if m.Key != `"versions"` {
				if err := r.skip(&m); err != nil {
					return err
				}
				return f(m)
			}
			if err := r.versions(); err != nil {
				return err
			}
			return f(m)
		})
	})
	if err != nil {
		return err
	}
	if _, err = r.dec.ReadToken(); err != io.EOF || r.first == nil {
		return ErrUnusual
	}
	return nil
}

// versions reads the list of versions.
func (r *Rewriter) versions() error {
	if r.dec.PeekKind() != '[' {
		return ErrUnusual
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	for r.dec.PeekKind() != ']' {
		if err := r.object(func(m Entry) error {
			if err := r.skip(&m); err != nil {
				return err
			}
			switch m.Key {
			case `"additionalPrinterColumns"`:
				var list []any
				if err := kjson.UnmarshalCaseSensitivePreserveInts(m.Value, &list); err != nil {
					return ErrUnusual
				}
				r.rename(list)
				with, err := json.Marshal(list)
				r.Replace(m.from, m.next, with)
				return err
			case `"name"`:
				if r.first == nil {
					r.first = bytes.Clone(m.Value)
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	if r.first == nil {
		return ErrUnusual
	}
	_, err := r.dec.ReadToken()
	return err
}

// object calls f with each field of an object; f reads the value.
func (r *Rewriter) object(f func(Entry) error) error {
	if r.dec.PeekKind() != '{' {
		return ErrUnusual
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	for r.dec.PeekKind() != '}' {
		name, err := r.dec.ReadValue()
		if err != nil {
			return err
		}
		end := int(r.dec.InputOffset())
		m := Entry{Key: string(name), Start: end - len(name)}
		if r.removed {
			r.parts[len(r.parts)-1].to, r.removed = m.Start, false
		}
		if err := f(m); err != nil {
			return err
		}
	}
	if r.removed {
		return ErrUnusual
	}
	_, err := r.dec.ReadToken()
	return err
}

// skip reads the value of m.
func (r *Rewriter) skip(m *Entry) (err error) {
	m.Value, err = r.dec.ReadValue()
	m.next = int(r.dec.InputOffset())
	m.from = m.next - len(m.Value)
	return err
}
