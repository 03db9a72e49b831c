package rule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/diff"
)

// maxCompared bounds the JSON of two values whose difference an error shows, in bytes. The comparison is quadratic in
// their lines; this much takes up to a quarter of a second.
const maxCompared = 256 << 10

// Difference shows clients their forbidden changes. Of larger values than maxCompared it shows the sizes.
func Difference(was, now any) string {
	before, failed := json.Marshal(was)
	after, failed2 := json.Marshal(now)
	if n := len(before) + len(after); failed == nil && failed2 == nil && n > maxCompared {
		return fmt.Sprintf("  (%d bytes before, %d bytes now: too many to show their difference)\n", len(before), len(after))
	}
	return diff.Diff(was, now)
}

// GoForm returns the form of a value of type T in an error of Kubernetes: JSON with the names of Go fields, in their
// order, and nulls for missing ones. Kubernetes' internal types have the fields of T, without JSON names.
func GoForm[T any](v any) json.RawMessage {
	if v == nil {
		return json.RawMessage("null")
	}
	var out bytes.Buffer
	writeGo(&out, reflect.ValueOf(As[T](v)))
	return out.Bytes()
}

// SameInGo is "same" for an object that errors show as GoForm.
func SameInGo[T any](val *Validation, p Value) {
	if val.Old != nil && !Equivalent(p.New, p.Old) {
		val.Invalid(p.Path, GoForm[T](p.New), "field is immutable")
	}
}

func writeGo(out *bytes.Buffer, v reflect.Value) {
	if _, ok := v.Interface().(json.Marshaler); !ok && !shared(v.Type()) {
		switch v.Kind() {
		case reflect.Struct:
			out.WriteByte('{')
			first := true
			writeFields(out, v, &first)
			out.WriteByte('}')
			return
		case reflect.Pointer:
			if !v.IsNil() {
				writeGo(out, v.Elem())
				return
			}
		case reflect.Slice:
			if v.Type().Elem().Kind() != reflect.Uint8 && !v.IsNil() {
				for i := range v.Len() {
					out.WriteByte("[,"[min(i, 1)])
					writeGo(out, v.Index(i))
				}
				if v.Len() == 0 {
					out.WriteByte('[')
				}
				out.WriteByte(']')
				return
			}
		}
	}
	data, err := json.Marshal(v.Interface()) // maps too: none of the shown ones has structs
	if err != nil {
		data = []byte("null")
	}
	out.Write(data)
}

// shared reports whether Kubernetes' internal types use a type unchanged, with its JSON names.
func shared(t reflect.Type) bool { return strings.HasPrefix(t.PkgPath(), "k8s.io/apimachinery/") }

// writeFields writes the fields of a struct, including the fields of embedded structs.
func writeFields(out *bytes.Buffer, v reflect.Value, first *bool) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous && !shared(f.Type) {
			writeFields(out, v.Field(i), first)
			continue
		}
		var part bytes.Buffer
		if f.Anonymous {
			data, _ := json.Marshal(v.Field(i).Interface())
			part.Write(data[1 : len(data)-1]) // without the braces
		} else {
			part.WriteString(`"` + f.Name + `":`)
			writeGo(&part, v.Field(i))
		}
		if !*first && part.Len() > 0 {
			out.WriteByte(',')
		}
		*first = *first && part.Len() == 0
		out.Write(part.Bytes())
	}
}
