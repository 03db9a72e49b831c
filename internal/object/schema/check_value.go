package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// KubeValue wraps a part of a definition for use as the bad value of a field error. kube-apiserver uses values of its
// internal types there; clients see them as JSON with the names of Go fields and without omitted fields.
func KubeValue(v any) json.Marshaler { return kubeValue{reflect.ValueOf(v)} }

type kubeValue struct{ v reflect.Value }

// MarshalJSON encodes the value like the internal type of the same name.
func (k kubeValue) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := writeKubeValue(&b, k.v)
	return b.Bytes(), err
}

func writeKubeValue(b *bytes.Buffer, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			b.WriteString("null")
			return nil
		}
		return writeKubeValue(b, v.Elem())
	case reflect.Struct:
		if raw, ok := v.Interface().(apiextensionsv1.JSON); ok {
			return writeRaw(b, raw)
		}
		b.WriteByte('{')
		for i, name := range kubeFields(v.Type()) {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(b, "%q:", name)
			if err := writeKubeValue(b, v.FieldByName(name)); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 {
			break
		}
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeKubeValue(b, v.Index(i)); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case reflect.Map:
		if v.IsNil() {
			break
		}
		return writeKubeMap(b, v)
	}
	raw, err := json.Marshal(v.Interface())
	b.Write(raw)
	return err
}

func writeKubeMap(b *bytes.Buffer, v reflect.Value) error {
	b.WriteByte('{')
	keys := v.MapKeys()
	slices.SortFunc(keys, func(x, y reflect.Value) int { return cmp.Compare(x.String(), y.String()) })
	for i, key := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(key.String())
		if err != nil {
			return err
		}
		b.Write(append(name, ':'))
		if err := writeKubeValue(b, v.MapIndex(key)); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func writeRaw(b *bytes.Buffer, raw apiextensionsv1.JSON) error {
	if len(raw.Raw) == 0 {
		b.WriteString("null")
		return nil
	}
	return json.Compact(b, raw.Raw)
}

// kubeFields returns the fields of the internal type in its order, which differs in one field of one type.
func kubeFields(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		names = append(names, t.Field(i).Name)
	}
	if t == reflect.TypeFor[apiextensionsv1.JSONSchemaProps]() {
		at := slices.Index(names, "Nullable")
		names = slices.Insert(slices.Delete(names, at, at+1), slices.Index(names, "Type")+1, "Nullable")
	}
	return names
}
