package crd

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"
)

// Decode decodes a definition from obj, decoded JSON. It ignores unknown fields, does not change obj, and shares no
// mutable data with it. The error is that of Kubernetes' JSON decoder for a value of the wrong type.
//
// It avoids encoding to bytes: the types of a schema's branches have decoders that scan their input again at each
// level, which is ten times slower for deep schemas.
func Decode(obj map[string]any) (*apiextensionsv1.CustomResourceDefinition, error) {
	def := &apiextensionsv1.CustomResourceDefinition{}
	if err := fill(reflect.ValueOf(def).Elem(), obj, definitionShape()); err != nil {
		return nil, decodeError(obj, err)
	}
	return def, nil
}

// DecodeJSON is Decode for encoded definitions.
func DecodeJSON(raw []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	var obj map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &obj); err != nil {
		return nil, fmt.Errorf("decode definition: %w", err)
	}
	return Decode(obj)
}

const sliceKind = reflect.Slice

func newValue(t reflect.Type) any { return reflect.New(t).Interface() }

// fill sets dst, with shape s, from decoded JSON. As in encoding/json, null leaves dst unchanged.
func fill(dst reflect.Value, v any, s *shape) error {
	if v == nil {
		return nil
	}
	switch s.form {
	case structForm:
		return fillStruct(dst, v, s)
	case mapForm:
		return fillMap(dst, v, s)
	case listForm:
		return fillList(dst, v, s)
	case rawForm:
		raw, err := json.Marshal(v)
		if err != nil {
			return err
		}
		dst.Addr().Interface().(*apiextensionsv1.JSON).Raw = raw
	case opaqueForm:
		return fillOpaque(dst, v)
	case schemaOrListForm, schemaOrBoolForm, schemaOrStringsForm:
		return fillUnion(dst, v, s)
	default:
		return fillScalar(dst, v, s)
	}
	return nil
}

func fillMap(dst reflect.Value, v any, s *shape) error {
	m, ok := v.(map[string]any)
	if !ok {
		return errMismatch
	}
	dst.Set(reflect.MakeMapWithSize(s.typ, len(m)))
	elem := reflect.New(s.elem.typ).Elem()
	for k, child := range m {
		elem.SetZero()
		if err := fill(elem, child, s.elem); err != nil {
			return err
		}
		dst.SetMapIndex(reflect.ValueOf(k), elem)
	}
	return nil
}

func fillList(dst reflect.Value, v any, s *shape) error {
	l, ok := v.([]any)
	if !ok {
		return errMismatch
	}
	dst.Set(reflect.MakeSlice(s.typ, len(l), len(l)))
	for i, child := range l {
		if err := fill(dst.Index(i), child, s.elem); err != nil {
			return err
		}
	}
	return nil
}

func fillScalar(dst reflect.Value, v any, s *shape) error {
	switch s.form {
	case stringForm:
		x, ok := v.(string)
		if !ok {
			return errMismatch
		}
		dst.SetString(x)
	case boolForm:
		x, ok := v.(bool)
		if !ok {
			return errMismatch
		}
		dst.SetBool(x)
	case intForm:
		x, ok := v.(int64)
		if !ok || dst.OverflowInt(x) {
			return errMismatch
		}
		dst.SetInt(x)
	case floatForm:
		switch x := v.(type) {
		case float64:
			dst.SetFloat(x)
		case int64:
			dst.SetFloat(float64(x))
		default:
			return errMismatch
		}
	}
	return nil
}

func fillStruct(dst reflect.Value, v any, s *shape) error {
	m, ok := v.(map[string]any)
	if !ok {
		return errMismatch
	}
	for k, child := range m {
		f := s.members[k]
		if f == nil || child == nil || f.untyped {
			continue
		}
		at := dst.FieldByIndex(f.index)
		if f.pointer {
			at.Set(reflect.New(f.shape.typ))
			at = at.Elem()
		}
		if err := fill(at, child, f.shape); err != nil {
			return err
		}
	}
	return nil
}

func fillOpaque(dst reflect.Value, v any) error {
	if dst.Kind() == reflect.Slice {
		text, ok := v.(string)
		if !ok {
			return errMismatch
		}
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return errMismatch
		}
		dst.SetBytes(data)
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, dst.Addr().Interface()); err != nil {
		return errMismatch
	}
	return nil
}

// fillUnion decodes a schema or its alternative. Values of other types are ignored, except beside a bool.
func fillUnion(dst reflect.Value, v any, s *shape) error {
	schema := func() (*apiextensionsv1.JSONSchemaProps, error) {
		p := &apiextensionsv1.JSONSchemaProps{}
		return p, fill(reflect.ValueOf(p).Elem(), v, s.elem)
	}
	_, isObject := v.(map[string]any)
	list, isList := v.([]any)
	var err error
	switch u := dst.Addr().Interface().(type) {
	case *apiextensionsv1.JSONSchemaPropsOrBool:
		switch {
		case isObject:
			u.Allows = true
			u.Schema, err = schema()
		default:
			allows, ok := v.(bool)
			if !ok {
				return errMismatch
			}
			u.Allows = allows
		}
	case *apiextensionsv1.JSONSchemaPropsOrArray:
		switch {
		case isObject:
			u.Schema, err = schema()
		case isList:
			u.JSONSchemas = make([]apiextensionsv1.JSONSchemaProps, len(list))
			for i, child := range list {
				if err := fill(reflect.ValueOf(&u.JSONSchemas[i]).Elem(), child, s.elem); err != nil {
					return err
				}
			}
		}
	case *apiextensionsv1.JSONSchemaPropsOrStringArray:
		switch {
		case isObject:
			u.Schema, err = schema()
		case isList:
			u.Property = make([]string, len(list))
			for i, child := range list {
				if child == nil {
					continue
				}
				text, ok := child.(string)
				if !ok {
					return errMismatch
				}
				u.Property[i] = text
			}
		}
	}
	return err
}

// decodeSchema returns the schema that props, decoded JSON, is.
func decodeSchema(props map[string]any) (*apiextensionsv1.JSONSchemaProps, error) {
	p := &apiextensionsv1.JSONSchemaProps{}
	return p, fill(reflect.ValueOf(p).Elem(), props, schemaShape())
}
