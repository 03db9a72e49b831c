package crd

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/api/crd/own"
	"github.com/bowsprit/bowsprit/internal/api/reshape"
)

// Normalize brings a definition into the form that Kubernetes stores, the result of a round trip through the Go type:
// without unknown fields and empty optional ones, with required ones. It returns the sorted paths of the unknown
// fields, as in strict decoding ("spec.versions[0].foo").
//
// It changes obj in place. Values that Kubernetes keeps as raw JSON (defaults, enums, examples) stay. As in Kubernetes,
// unknown fields below "items" and "additionalProperties" are dropped but not reported, because the types of these
// fields have custom decoders without strictness.
//
// The error is that of Kubernetes' JSON decoder for a value of the wrong type; obj is then partly changed.
func Normalize(obj map[string]any) (unknown []string, err error) {
	return normalize(obj, false)
}

// decodeObject is Normalize for an object before validation: empty keywords of schemas stay, because validation refuses
// some of them. dropEmpty removes them afterwards.
func decodeObject(obj map[string]any) (unknown []string, err error) {
	reshape.TakeRules(obj)
	own.TakeColumns(obj)
	own.TakeImmutable(obj)
	return normalize(obj, true)
}

// dropEmpty brings a valid object from decodeObject into the form of Normalize.
func dropEmpty(obj map[string]any) {
	if hasEmptyKeyword(obj["spec"]) {
		_, _ = Normalize(obj) // it succeeded before
	}
}

// emptyKeywords holds the members of a schema that validation refuses in some places even if they are empty.
var emptyKeywords = map[string]bool{
	"definitions": true, "patternProperties": true, "dependencies": true, "allOf": true, "anyOf": true, "oneOf": true,
	"enum": true, "x-kubernetes-list-map-keys": true, "items": true,
}

// hasEmptyKeyword reports whether v may hold an empty keyword. A property of that name counts too.
func hasEmptyKeyword(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			switch value := child.(type) {
			case map[string]any:
				if len(value) == 0 && emptyKeywords[name] {
					return true
				}
			case []any:
				if len(value) == 0 && emptyKeywords[name] {
					return true
				}
			case nil:
				continue
			default:
				if name == "items" {
					return true
				}
				continue
			}
			if hasEmptyKeyword(child) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasEmptyKeyword)
	}
	return false
}

func normalize(obj map[string]any, keepEmpty bool) (unknown []string, err error) {
	n := normalizer{keepEmpty: keepEmpty}
	// Only the text of the error needs the original object, and errors are rare; the text is made from the partly
	// changed one.
	if _, err := n.value(obj, definitionShape(), true); err != nil {
		return nil, decodeError(obj, err)
	}
	slices.Sort(n.unknown)
	// Kubernetes stops counting here, too.
	return n.unknown[:min(len(n.unknown), 100)], nil
}

// errMismatch means that a value is not of the type that the definition's Go type has at its place.
var errMismatch = errors.New("value of the wrong type")

type normalizer struct {
	path      []byte
	unknown   []string
	keepEmpty bool // emptyKeywords stay
}

// value returns the normal form of v. strict reports whether unknown fields are reported.
func (n *normalizer) value(v any, s *shape, strict bool) (any, error) {
	switch s.form {
	case structForm:
		return n.object(v, s, strict)
	case mapForm:
		return n.dictionary(v, s, strict)
	case listForm:
		return n.list(v, s, strict)
	case rawForm:
		return v, nil
	case opaqueForm:
		return opaque(v, s)
	case schemaOrListForm, schemaOrStringsForm, schemaOrBoolForm:
		return n.union(v, s)
	}
	if v == nil {
		return zero(s), nil
	}
	switch s.form {
	case stringForm:
		if _, ok := v.(string); ok {
			return v, nil
		}
	case boolForm:
		if _, ok := v.(bool); ok {
			return v, nil
		}
	case intForm:
		if i, ok := v.(int64); ok && !(s.typ.Size() == 4 && int64(int32(i)) != i) {
			return v, nil
		}
	case floatForm:
		switch f := v.(type) {
		case float64:
			return v, nil
		case int64:
			// Kubernetes uses a float64 here, so a large integer loses digits.
			if int64(float64(f)) != f {
				return float64(f), nil
			}
			return v, nil
		}
	}
	return nil, errMismatch
}

func (n *normalizer) object(v any, s *shape, strict bool) (any, error) {
	if v == nil {
		v = map[string]any{}
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errMismatch
	}
	depth := len(n.path)
	for name, child := range m {
		f := s.members[name]
		if f == nil {
			delete(m, name)
			if strict {
				n.unknown = append(n.unknown, string(append(n.path, "."+name...)[1:]))
			}
			continue
		}
		if child == nil && f.pointer {
			delete(m, name)
			continue
		}
		n.push("." + name)
		child, err := n.value(child, f.shape, strict)
		if err != nil {
			return nil, err
		}
		n.path = n.path[:depth]
		if n.keepEmpty && s.typ == schemaType && child != nil && emptyKeywords[name] {
			m[name] = child
			continue
		}
		if !f.pointer && (f.omitEmpty && isEmpty(child, f.shape) || f.omitZero && child == nil) {
			delete(m, name)
			continue
		}
		m[name] = child
	}
	for _, f := range s.obligatory {
		if _, ok := m[f.name]; !ok {
			child, err := n.value(nil, f.shape, false)
			if err != nil {
				return nil, err
			}
			m[f.name] = child
		}
	}
	return m, nil
}

func (n *normalizer) dictionary(v any, s *shape, strict bool) (any, error) {
	if v == nil {
		return nil, nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errMismatch
	}
	depth := len(n.path)
	for k, child := range m {
		n.push("." + k)
		child, err := n.value(child, s.elem, strict)
		if err != nil {
			return nil, err
		}
		n.path = n.path[:depth]
		m[k] = child
	}
	return m, nil
}

func (n *normalizer) list(v any, s *shape, strict bool) (any, error) {
	if v == nil {
		return nil, nil
	}
	l, ok := v.([]any)
	if !ok {
		return nil, errMismatch
	}
	depth := len(n.path)
	for i := range l {
		n.push("[" + strconv.Itoa(i) + "]")
		child, err := n.value(l[i], s.elem, strict)
		if err != nil {
			return nil, err
		}
		n.path = n.path[:depth]
		l[i] = child
	}
	return l, nil
}

// union normalizes a schema or its alternative.
func (n *normalizer) union(v any, s *shape) (any, error) {
	switch x := v.(type) {
	case map[string]any:
		return n.object(x, s.elem, false)
	case bool:
		if s.form == schemaOrBoolForm {
			return x, nil
		}
	case []any:
		switch {
		case s.form == schemaOrListForm && len(x) > 0:
			for i := range x {
				child, err := n.object(x[i], s.elem, false)
				if err != nil {
					return nil, err
				}
				x[i] = child
			}
			return x, nil
		case s.form == schemaOrStringsForm && len(x) > 0:
			for i := range x {
				if x[i] == nil {
					x[i] = ""
				}
				if _, ok := x[i].(string); !ok {
					return nil, errMismatch
				}
			}
			return x, nil
		}
	}
	switch {
	case s.form == schemaOrBoolForm:
		return nil, errMismatch
	case s.form == schemaOrListForm && n.keepEmpty:
		return v, nil // validation reports the error
	}
	return nil, nil
}

func (n *normalizer) push(s string) { n.path = append(n.path, s...) }

// opaque passes v through the decoder and encoder of its type.
func opaque(v any, s *shape) (any, error) {
	if v == nil {
		return nil, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	typed := newValue(s.typ)
	if err := json.Unmarshal(raw, typed); err != nil {
		return nil, errMismatch
	}
	again, err := json.Marshal(typed)
	if err != nil || bytes.Equal(again, raw) {
		return v, err
	}
	var out any
	err = kjson.UnmarshalCaseSensitivePreserveInts(again, &out)
	return out, err
}

// isEmpty reports whether encoding/json leaves v out of a field with omitempty.
func isEmpty(v any, s *shape) bool {
	switch v := v.(type) {
	case nil:
		return s.form == mapForm || s.form == listForm || s.form == opaqueForm && s.typ.Kind() == sliceKind
	case string:
		return v == ""
	case bool:
		return !v && s.form == boolForm
	case int64:
		return v == 0
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0 && s.form == mapForm
	}
	return false
}

// zero is how encoding/json writes the zero value of a scalar.
func zero(s *shape) any {
	switch s.form {
	case stringForm:
		return ""
	case boolForm:
		return false
	case intForm, floatForm:
		return int64(0)
	}
	return nil
}

// decodeError returns the error of encoding/json, in Kubernetes' version, for obj, which does not fit the type.
func decodeError(obj map[string]any, cause error) error {
	raw, err := json.Marshal(obj)
	if err != nil {
		return cause
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &apiextensionsv1.CustomResourceDefinition{}); err != nil {
		return err
	}
	return cause
}
