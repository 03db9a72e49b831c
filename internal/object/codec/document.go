package codec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// Some built-in kinds contain other documents: fields of type runtime.RawExtension, such as the data of a
// ControllerRevision and the parameters of a device's driver. Kubernetes preserves their bytes. In decoded JSON they
// are ordinary values without whitespace or an order of keys. So their texts are kept beside an object, in the order of
// the fields, and restored when it is written. A text is matched by content: each replaces one document that is the
// same JSON.

// HoldsDocuments reports whether values of the Go type that typed points to may contain documents.
func HoldsDocuments(typed any) bool { return len(documentsIn(typed)) > 0 }

// Documents returns the texts of the documents in typed, a pointer to a value of a Go type of the Kubernetes API. in
// selects fields of the value by their JSON names; nil selects all.
func Documents(typed any, in func(field string) bool) []string {
	if !HoldsDocuments(typed) {
		return nil // without an allocation
	}
	var texts []string
	eachDocument(typed, in, func(d *runtime.RawExtension) {
		if _, ok := canonicalText(string(d.Raw)); ok {
			texts = append(texts, string(d.Raw))
		}
	})
	return texts
}

// Verbatim returns texts, the documents of one object, if AppendJSON would write one of them differently. Otherwise, as
// nearly always, it returns nil: nothing must be kept.
func Verbatim(texts []string) []string {
	for _, text := range texts {
		if canonical, _ := canonicalText(text); canonical != text {
			return texts
		}
	}
	return nil
}

// WithDocuments returns doc, the JSON of an object, with texts as its documents (see SetDocuments), compact. into is a
// pointer to a fresh value of its Go type.
func WithDocuments(doc []byte, into any, texts []string) ([]byte, error) {
	if err := json.Unmarshal(doc, into); err != nil {
		return nil, fmt.Errorf("decode as %T: %w", into, err)
	}
	SetDocuments(into, texts)
	return appendTyped(make([]byte, 0, len(doc)), into)
}

// SetDocuments replaces equal documents in typed by texts. Each text is used once, in order.
func SetDocuments(typed any, texts []string) {
	if len(texts) == 0 {
		return
	}
	left := map[string][]string{} // by content
	for _, text := range texts {
		if canonical, ok := canonicalText(text); ok {
			left[canonical] = append(left[canonical], text)
		}
	}
	eachDocument(typed, nil, func(d *runtime.RawExtension) {
		canonical, ok := canonicalText(string(d.Raw))
		if same := left[canonical]; ok && len(same) > 0 {
			d.Raw, left[canonical] = []byte(same[0]), same[1:]
		}
	})
}

// canonicalText returns AppendJSON's output for a document. ok is false if it is not JSON.
func canonicalText(text string) (_ string, ok bool) {
	if c := ReadCanonical([]byte(text)); c.Skip() && c.Done() {
		return text, true
	}
	v, err := DecodeJSON([]byte(text))
	if err != nil {
		return "", false
	}
	return string(AppendJSON(nil, v)), true
}

func eachDocument(typed any, in func(field string) bool, f func(*runtime.RawExtension)) {
	for _, field := range documentsIn(typed) {
		if in == nil || in(field.name) {
			field.walk(reflect.ValueOf(typed).Elem().Field(field.index), f)
		}
	}
}

// documentField is a field of an object that may contain documents.
type documentField struct {
	index int
	name  string
	walk  documentWalk
}

// documentWalk calls f with each document in v, a value of the walk's type. A document is a RawExtension: JSON of any
// form. The value v must be addressable.
type documentWalk func(v reflect.Value, f func(*runtime.RawExtension))

// documentFields has the documentFields of each type that was met.
var documentFields sync.Map

func documentsIn(typed any) []documentField {
	t := reflect.TypeOf(typed)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil
	}
	if fields, ok := documentFields.Load(t); ok {
		return fields.([]documentField)
	}
	fields := documentFieldsOf(t.Elem(), map[reflect.Type]bool{})
	documentFields.Store(t, fields)
	return fields
}

func documentFieldsOf(t reflect.Type, open map[reflect.Type]bool) (fields []documentField) {
	for i := range t.NumField() {
		if walk := documentWalkOf(t.Field(i).Type, open); walk != nil {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			fields = append(fields, documentField{i, name, walk})
		}
	}
	return fields
}

// documentWalkOf returns nil for a type without documents, like nearly all types. open holds the enclosing types: a
// recursive type, a schema, has no documents.
func documentWalkOf(t reflect.Type, open map[reflect.Type]bool) documentWalk {
	switch {
	case t == reflect.TypeFor[runtime.RawExtension]():
		return func(v reflect.Value, f func(*runtime.RawExtension)) { f(v.Addr().Interface().(*runtime.RawExtension)) }
	case t.Kind() == reflect.Pointer:
		if below := documentWalkOf(t.Elem(), open); below != nil {
			return func(v reflect.Value, f func(*runtime.RawExtension)) {
				if !v.IsNil() {
					below(v.Elem(), f)
				}
			}
		}
	case t.Kind() == reflect.Slice:
		if below := documentWalkOf(t.Elem(), open); below != nil {
			return func(v reflect.Value, f func(*runtime.RawExtension)) {
				for i := range v.Len() {
					below(v.Index(i), f)
				}
			}
		}
	case t.Kind() == reflect.Struct && !open[t]:
		open[t] = true
		defer delete(open, t)
		if fields := documentFieldsOf(t, open); len(fields) > 0 {
			return func(v reflect.Value, f func(*runtime.RawExtension)) {
				for _, field := range fields {
					field.walk(v.Field(field.index), f)
				}
			}
		}
	}
	return nil
}
