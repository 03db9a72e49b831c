package crd

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// Form stores definitions in v1beta1, like kube-apiserver, so that either can read the other's. Everything above the
// store uses v1.
//
// Schemas, nearly all of a definition, are the same in both versions. So for definitions from Encode bytes are copied
// except for the few differences; definitions stored by another server are decoded completely.
func Form() *catalog.Form {
	return &catalog.Form{Version: "v1beta1", Encode: toStored, Decode: fromStored}
}

var (
	betaPrefix = []byte(`{"apiVersion":"` + betaVersion + `"`)
	v1Prefix   = []byte(`{"apiVersion":"` + v1Version + `"`)
)

// errUnusual: the bytes differ from toStored's output or input, and must be decoded.
var errUnusual = errors.New("unusual definition")

// toStored returns the stored bytes for a definition of v1 with sorted keys.
func toStored(raw []byte) ([]byte, error) {
	r := newRewriter(raw)
	r.replace(len(`{"apiVersion":`), len(v1Prefix), []byte(`"`+betaVersion+`"`))
	err := r.definition(func(m entry) error {
		switch m.key {
		case `"conversion"`:
			return r.edit(m, conversionToBeta)
		case `"preserveUnknownFields"`:
			r.preserve = true
		case `"scope"`:
			if !r.preserve {
				r.replace(m.start, m.start, []byte(`"preserveUnknownFields":false,`))
			}
		case `"versions"`:
			r.replace(m.start, m.start, slices.Concat([]byte(`"version":`), r.first, []byte(`,`)))
		}
		return nil
	}, "jsonPath", "JSONPath")
	if err == nil && bytes.HasPrefix(raw, v1Prefix) {
		return r.bytes(), nil
	}
	return decoded(raw, toBeta)
}

// fromStored returns a stored definition in v1. Definitions of older servers may lack defaults.
func fromStored(raw []byte) ([]byte, error) {
	if bytes.HasPrefix(raw, v1Prefix) {
		return raw, nil
	}
	if bytes.HasPrefix(raw, betaPrefix) {
		r := newRewriter(raw)
		r.replace(len(`{"apiVersion":`), len(betaPrefix), []byte(`"`+v1Version+`"`))
		seen := 0
		err := r.definition(func(m entry) error {
			switch m.key {
			case `"conversion"`:
				seen++
				return r.edit(m, conversionToV1)
			case `"preserveUnknownFields"`:
				seen++
				if string(m.value) == "false" {
					r.remove(m)
				}
			case `"version"`:
				seen++
				r.remove(m)
			case `"validation"`, `"subresources"`, `"additionalPrinterColumns"`, `"selectableFields"`:
				return errUnusual
			}
			return nil
		}, "JSONPath", "jsonPath")
		if err == nil && seen == 3 {
			return r.bytes(), nil
		}
	}
	return decoded(raw, func(obj catalog.Object) {
		if obj["apiVersion"] == betaVersion {
			defaultBeta(obj)
			toV1(obj)
		}
	})
}

// decoded decodes a definition, lets f change it, and encodes it.
func decoded(raw []byte, f func(catalog.Object)) ([]byte, error) {
	var obj map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &obj); err != nil {
		return nil, err
	}
	f(obj)
	return json.Marshal(obj)
}

// entry is a field of an object in the bytes of a definition: its name as JSON, where that starts, and its value.
type entry struct {
	key               string
	start, from, next int // of the key, of the value, of the value's end
	value             []byte
}

// rewriter edits a definition's bytes by replacing parts of them.
type rewriter struct {
	raw   []byte
	dec   *jsontext.Decoder
	parts []part

	preserve bool   // spec.preserveUnknownFields is present
	first    []byte // the first version's name, as JSON
	removed  bool   // the last part extends to the next key
}

// part replaces the bytes from (inclusive) to (exclusive).
type part struct {
	from, to int
	with     []byte
}

func newRewriter(raw []byte) *rewriter {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	return &rewriter{raw: raw, dec: dec}
}

func (r *rewriter) replace(from, to int, with []byte) {
	r.parts = append(r.parts, part{from, to, with})
}

// remove removes a field other than the last of its object, with the comma behind it.
func (r *rewriter) remove(m entry) {
	r.replace(m.start, m.next, nil)
	r.removed = true
}

// edit decodes a value, an object, lets f change it, and replaces it.
func (r *rewriter) edit(m entry, f func(map[string]any)) error {
	var v map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(m.value, &v); err != nil || v == nil {
		return errUnusual
	}
	f(v)
	with, err := json.Marshal(v)
	r.replace(m.from, m.next, with)
	return err
}

// bytes returns the definition with all replacements.
func (r *rewriter) bytes() []byte {
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

// definition calls f with the fields of spec, "versions" last, and renames the paths of the versions' columns.
func (r *rewriter) definition(f func(entry) error, from, to string) error {
	err := r.object(func(m entry) error {
		if m.key != `"spec"` {
			return r.skip(&m)
		}
		return r.object(func(m entry) error {
			if m.key != `"versions"` {
				if err := r.skip(&m); err != nil {
					return err
				}
				return f(m)
			}
			if err := r.versions(from, to); err != nil {
				return err
			}
			return f(m)
		})
	})
	if err != nil {
		return err
	}
	if _, err = r.dec.ReadToken(); err != io.EOF || r.first == nil {
		return errUnusual
	}
	return nil
}

// versions reads the list of versions.
func (r *rewriter) versions(from, to string) error {
	if r.dec.PeekKind() != '[' {
		return errUnusual
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	for r.dec.PeekKind() != ']' {
		if err := r.object(func(m entry) error {
			if err := r.skip(&m); err != nil {
				return err
			}
			switch m.key {
			case `"additionalPrinterColumns"`:
				var list []any
				if err := kjson.UnmarshalCaseSensitivePreserveInts(m.value, &list); err != nil {
					return errUnusual
				}
				renameEach(list, from, to)
				with, err := json.Marshal(list)
				r.replace(m.from, m.next, with)
				return err
			case `"name"`:
				if r.first == nil {
					r.first = bytes.Clone(m.value)
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	if r.first == nil {
		return errUnusual
	}
	_, err := r.dec.ReadToken()
	return err
}

// object calls f with each field of an object; f reads the value.
func (r *rewriter) object(f func(entry) error) error {
	if r.dec.PeekKind() != '{' {
		return errUnusual
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
		m := entry{key: string(name), start: end - len(name)}
		if r.removed {
			r.parts[len(r.parts)-1].to, r.removed = m.start, false
		}
		if err := f(m); err != nil {
			return err
		}
	}
	if r.removed {
		return errUnusual
	}
	_, err := r.dec.ReadToken()
	return err
}

// skip reads the value of m.
func (r *rewriter) skip(m *entry) (err error) {
	m.value, err = r.dec.ReadValue()
	m.next = int(r.dec.InputOffset())
	m.from = m.next - len(m.value)
	return err
}

// webhookFields maps fields of spec.conversion in v1beta1 to their names in "webhook" of v1.
var webhookFields = map[string]string{
	"webhookClientConfig": "clientConfig", "conversionReviewVersions": "conversionReviewVersions",
}

// conversionToBeta brings spec.conversion of v1 into v1beta1.
func conversionToBeta(conversion map[string]any) {
	webhook, _ := conversion["webhook"].(map[string]any)
	delete(conversion, "webhook")
	for beta, v1 := range webhookFields {
		if v := webhook[v1]; v != nil {
			conversion[beta] = v
		}
	}
}

// conversionToV1 brings spec.conversion of v1beta1 into v1.
func conversionToV1(conversion map[string]any) {
	webhook := map[string]any{}
	for beta, v1 := range webhookFields {
		if v := conversion[beta]; v != nil {
			webhook[v1] = v
		}
		delete(conversion, beta)
	}
	if len(webhook) > 0 {
		if webhook["conversionReviewVersions"] == nil {
			webhook["conversionReviewVersions"] = nil // required in v1
		}
		conversion["webhook"] = webhook
	}
}
