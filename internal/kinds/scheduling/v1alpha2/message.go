package v1alpha2

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Protobuf messages are encoded and decoded by the tags of the fields, `protobuf:"bytes,2,opt"`. The bytes equal those
// of Kubernetes' generated code: fields are in the order of the struct, and a field that is neither a pointer nor a
// list is present even if it is empty.
//
// Fields are strings, integers, bools, structs, pointers to these, and lists of strings or structs. A struct with
// Marshal and Unmarshal, such as Kubernetes' metadata, encodes and decodes itself.

// generated is a type that encodes and decodes itself.
type generated interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// marshal encodes the struct that v points to, to implement its Marshal.
func marshal(v any) ([]byte, error) { return write(reflect.ValueOf(v).Elem()) }

// write returns the message of a struct.
func write(v reflect.Value) (out []byte, err error) {
	for i := range v.NumField() {
		number, ok := numberOf(v.Type().Field(i))
		if !ok {
			continue
		}
		f := v.Field(i)
		if f.Kind() != reflect.Slice {
			if out, err = appendField(out, number, f); err != nil {
				return nil, err
			}
			continue
		}
		for j := range f.Len() {
			if out, err = appendField(out, number, f.Index(j)); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// appendField appends a field with its tag, and nothing for a nil pointer.
func appendField(out []byte, number protowire.Number, f reflect.Value) ([]byte, error) {
	if f.Kind() == reflect.Pointer {
		if f.IsNil() {
			return out, nil
		}
		f = f.Elem()
	}
	switch f.Kind() {
	case reflect.String:
		return protowire.AppendString(protowire.AppendTag(out, number, protowire.BytesType), f.String()), nil
	case reflect.Bool:
		out = protowire.AppendTag(out, number, protowire.VarintType)
		return protowire.AppendVarint(out, protowire.EncodeBool(f.Bool())), nil
	case reflect.Int32, reflect.Int64:
		return protowire.AppendVarint(protowire.AppendTag(out, number, protowire.VarintType), uint64(f.Int())), nil
	case reflect.Struct:
		inner, err := writeStruct(f)
		if err != nil {
			return nil, err
		}
		return protowire.AppendBytes(protowire.AppendTag(out, number, protowire.BytesType), inner), nil
	}
	return nil, noForm(f)
}

func writeStruct(f reflect.Value) ([]byte, error) {
	if g, ok := f.Addr().Interface().(generated); ok {
		return g.Marshal()
	}
	return write(f)
}

// unmarshal decodes a message into the struct that v points to, to implement its Unmarshal. It skips unknown fields. A
// repeated field is merged into a list or struct, and replaces any other value.
func unmarshal(data []byte, v any) error { return read(data, reflect.ValueOf(v).Elem()) }

// read reads a message into a struct.
func read(data []byte, v reflect.Value) error {
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, wire, data); n < 0 {
			return protowire.ParseError(n)
		}
		name, f, ok := fieldOf(v, number)
		if ok {
			if err := readField(data[:n], wire, f); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		data = data[n:]
	}
	return nil
}

// readField reads a whole value of a wire type into a field.
func readField(data []byte, wire protowire.Type, f reflect.Value) error {
	switch f.Kind() {
	case reflect.Slice:
		element := reflect.New(f.Type().Elem()).Elem()
		if err := readField(data, wire, element); err != nil {
			return err
		}
		f.Set(reflect.Append(f, element))
		return nil
	case reflect.Pointer:
		if f.IsNil() {
			f.Set(reflect.New(f.Type().Elem()))
		}
		return readField(data, wire, f.Elem())
	case reflect.Bool, reflect.Int32, reflect.Int64:
		if wire != protowire.VarintType {
			return wrongType(wire)
		}
		number, _ := protowire.ConsumeVarint(data)
		if f.Kind() == reflect.Bool {
			f.SetBool(number != 0)
		} else {
			f.SetInt(int64(number)) // truncated if it is too large for the field
		}
		return nil
	case reflect.String, reflect.Struct:
		if wire != protowire.BytesType {
			return wrongType(wire)
		}
		content, _ := protowire.ConsumeBytes(data)
		if f.Kind() == reflect.String {
			f.SetString(string(content))
			return nil
		}
		if g, ok := f.Addr().Interface().(generated); ok {
			return g.Unmarshal(content)
		}
		return read(content, f)
	}
	return noForm(f)
}

// fieldOf returns the name and value of the field with a number.
func fieldOf(v reflect.Value, number protowire.Number) (name string, f reflect.Value, ok bool) {
	for i := range v.NumField() {
		if n, tagged := numberOf(v.Type().Field(i)); tagged && n == number {
			return v.Type().Field(i).Name, v.Field(i), true
		}
	}
	return "", reflect.Value{}, false
}

// numberOf returns the protobuf number of a field; ok is false if it has none.
func numberOf(f reflect.StructField) (number protowire.Number, ok bool) {
	_, after, _ := strings.Cut(f.Tag.Get("protobuf"), ",")
	text, _, _ := strings.Cut(after, ",")
	n, err := strconv.ParseInt(text, 10, 32)
	return protowire.Number(n), err == nil
}

func wrongType(wire protowire.Type) error { return fmt.Errorf("wire type %d is not the field's", wire) }

func noForm(f reflect.Value) error { return fmt.Errorf("%s has no protobuf form", f.Type()) }
