package codec

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// appendTyped appends the JSON of a value of a Go type of the Kubernetes API, like encoding/json except that fields are
// sorted by name, as in AppendJSON. typed is a pointer to the value. Fields from a type's own MarshalJSON keep their
// order.
func appendTyped(dst []byte, typed any) ([]byte, error) {
	v := reflect.ValueOf(typed)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return appendMarshalled(dst, typed)
	}
	return writerOf(v.Type().Elem())(dst, v.Elem())
}

// typeWriter appends the JSON of an addressable value of one type.
type typeWriter func(dst []byte, v reflect.Value) ([]byte, error)

// writers caches a typeWriter for each type.
var writers sync.Map

func writerOf(t reflect.Type) typeWriter {
	if w, ok := writers.Load(t); ok {
		return w.(typeWriter)
	}
	// A type may contain itself: until its writer is complete, this one stands in.
	var made typeWriter
	ready := make(chan struct{})
	held, loaded := writers.LoadOrStore(t, typeWriter(func(dst []byte, v reflect.Value) ([]byte, error) {
		<-ready
		return made(dst, v)
	}))
	if loaded {
		return held.(typeWriter)
	}
	made = newWriter(t)
	close(ready)
	writers.Store(t, made)
	return made
}

var marshaler, textMarshaler = reflect.TypeFor[json.Marshaler](), reflect.TypeFor[interface {
	MarshalText() ([]byte, error)
}]()

func newWriter(t reflect.Type) typeWriter {
	pointer := reflect.PointerTo(t)
	switch {
	case t.Kind() != reflect.Pointer && pointer.Implements(marshaler):
		return writeMarshaler
	case pointer.Implements(textMarshaler):
		return writeOther
	}
	switch t.Kind() {
	case reflect.String:
		return func(dst []byte, v reflect.Value) ([]byte, error) { return AppendString(dst, v.String()), nil }
	case reflect.Bool:
		return func(dst []byte, v reflect.Value) ([]byte, error) { return strconv.AppendBool(dst, v.Bool()), nil }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(dst []byte, v reflect.Value) ([]byte, error) { return strconv.AppendInt(dst, v.Int(), 10), nil }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(dst []byte, v reflect.Value) ([]byte, error) { return strconv.AppendUint(dst, v.Uint(), 10), nil }
	case reflect.Pointer:
		return pointerWriter(t)
	case reflect.Slice:
		return sliceWriter(t)
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !t.Key().Implements(textMarshaler) {
			return mapWriter(t)
		}
	case reflect.Struct:
		return structWriter(t)
	}
	return writeOther
}

// writeOther writes a value without its own writer.
func writeOther(dst []byte, v reflect.Value) ([]byte, error) {
	return appendMarshalled(dst, v.Interface())
}

func appendMarshalled(dst []byte, v any) ([]byte, error) {
	doc, err := json.Marshal(v)
	return append(dst, doc...), err
}

func writeMarshaler(dst []byte, v reflect.Value) ([]byte, error) {
	doc, err := v.Addr().Interface().(json.Marshaler).MarshalJSON()
	if err == nil {
		if c := ReadCanonical(doc); c.Skip() && c.Done() {
			return append(dst, doc...), nil
		}
	}
	return writeOther(dst, v) // encoding/json checks, compacts and escapes it, or words the error
}

func pointerWriter(t reflect.Type) typeWriter {
	write := writerOf(t.Elem())
	return func(dst []byte, v reflect.Value) ([]byte, error) {
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return write(dst, v.Elem())
	}
}

func sliceWriter(t reflect.Type) typeWriter {
	if t.Elem().Kind() == reflect.Uint8 && t.Elem().NumMethod() == 0 {
		return func(dst []byte, v reflect.Value) ([]byte, error) {
			if v.IsNil() {
				return append(dst, "null"...), nil
			}
			return append(base64.StdEncoding.AppendEncode(append(dst, '"'), v.Bytes()), '"'), nil
		}
	}
	write := writerOf(t.Elem())
	return func(dst []byte, v reflect.Value) (_ []byte, err error) {
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = write(dst, v.Index(i)); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	}
}

func mapWriter(t reflect.Type) typeWriter {
	write := writerOf(t.Elem())
	return func(dst []byte, v reflect.Value) (_ []byte, err error) {
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		value := reflect.New(t.Elem()).Elem() // map elements are not addressable
		dst = append(dst, '{')
		for i, key := range keys {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(AppendString(dst, key.String()), ':')
			value.Set(v.MapIndex(key))
			if dst, err = write(dst, value); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	}
}

// typedField is a field of a struct, or of an embedded struct.
type typedField struct {
	index []int
	name  string
	head  []byte // the name in quotes and a colon
	omit  func(reflect.Value) bool
	write typeWriter
}

func structWriter(t reflect.Type) typeWriter {
	fields, ok := fieldsOf(t, nil, nil)
	slices.SortFunc(fields, func(a, b typedField) int { return strings.Compare(a.name, b.name) })
	for i := range fields {
		ok = ok && (i == 0 || fields[i].name != fields[i-1].name)
	}
	if !ok {
		return writeOther
	}
	return func(dst []byte, v reflect.Value) (_ []byte, err error) {
		dst = append(dst, '{')
		first := true
		for i := range fields {
			f := &fields[i]
			value := v.FieldByIndex(f.index)
			if f.omit != nil && f.omit(value) {
				continue
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			if dst, err = f.write(append(dst, f.head...), value); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	}
}

// fieldsOf appends the fields of a struct and of its embedded structs; index is the struct's own. ok is false if
// encoding/json handles a field in a special way.
func fieldsOf(t reflect.Type, index []int, fields []typedField) (_ []typedField, ok bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := append(slices.Clone(index), i)
		switch {
		case name == "-":
			continue
		case f.Anonymous && name == "":
			if f.Type.Kind() != reflect.Struct || reflect.PointerTo(f.Type).Implements(marshaler) {
				return fields, false
			}
			if fields, ok = fieldsOf(f.Type, at, fields); !ok {
				return fields, false
			}
			continue
		case !f.IsExported():
			continue
		}
		if name == "" {
			name = f.Name
		}
		made := typedField{index: at, name: name, head: append(AppendString(nil, name), ':'), write: writerOf(f.Type)}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "omitempty":
				made.omit = either(made.omit, isEmpty)
			case "omitzero":
				made.omit = either(made.omit, isZero)
			case "", "inline":
			default:
				return fields, false
			}
		}
		fields = append(fields, made)
	}
	return fields, true
}

func either(a, b func(reflect.Value) bool) func(reflect.Value) bool {
	if a == nil {
		return b
	}
	return func(v reflect.Value) bool { return a(v) || b(v) }
}

// isEmpty implements omitempty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String, reflect.Array:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// isZero implements omitzero.
func isZero(v reflect.Value) bool {
	at := v
	if v.Kind() != reflect.Pointer {
		at = v.Addr()
	} else if v.IsNil() {
		return true
	}
	if z, ok := at.Interface().(interface{ IsZero() bool }); ok {
		return z.IsZero()
	}
	return v.IsZero()
}
