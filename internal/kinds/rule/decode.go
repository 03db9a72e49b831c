package rule

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// DecodeAs is the Decode rule of every built-in kind: it converts obj to the form that it has after being decoded into
// the kind's Go type and encoded again, which kube-apiserver stores and serves. It drops unknown fields and empty maps,
// converts times to UTC and nulls in maps of strings to "", and adds fields without omitempty.
//
// It returns the paths of the unknown fields ("spec.foo"). An error has the text of encoding/json, for example "json:
// cannot unmarshal number into Go struct field ConfigMap.data of type string"; obj is then unchanged.
func DecodeAs[T any](obj object.Object) (unknown []string, err error) {
	if err := quantity.Object(reflect.TypeFor[T](), obj); err != nil {
		return nil, err
	}
	// It goes through JSON, which produces the errors that clients know. Assigning the fields directly, as
	// runtime.DefaultUnstructuredConverter does, would take half the time and accept a number that is too large for an
	// int32.
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode for decoding: %w", err)
	}
	typed := new(T)
	strict, err := kjson.UnmarshalStrict(data, typed, kjson.DisallowUnknownFields)
	if err != nil {
		return nil, err
	}
	for _, e := range strict {
		if f, ok := e.(kjson.FieldError); ok {
			unknown = append(unknown, f.FieldPath())
		}
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	// An empty list of managedFields ends tracking; the Go type encodes it as none, which has no meaning.
	if meta, _ := obj["metadata"].(map[string]any); meta != nil {
		if entries, ok := meta["managedFields"].([]any); ok && len(entries) == 0 {
			out["metadata"].(map[string]any)["managedFields"] = entries
		}
	}
	clear(obj)
	maps.Copy(obj, out)
	return unknown, nil
}

// Typed makes a function for rules from functions on the Go type: create validates a new object, update a change
// through a subresource, "" for the object itself. Without an update each change is validated as a creation.
func Typed[T any](
	create func(*T) field.ErrorList, update func(obj, old *T, subresource string) field.ErrorList,
) Function {
	return func(val *Validation, _ Value) {
		val.Errs = append(val.Errs, typedErrors(val, create, update)...)
	}
}

func typedErrors[T any](
	val *Validation, create func(*T) field.ErrorList, update func(obj, old *T, subresource string) field.ErrorList,
) field.ErrorList {
	typed, errs := Read[T](val.Obj)
	switch {
	case errs != nil:
		return errs
	case val.Old == nil || update == nil:
		return create(typed)
	}
	was, errs := Read[T](val.Old)
	if errs != nil {
		return errs
	}
	return update(typed, was, val.Subresource)
}

// Read returns obj as its Go type. obj has been through decode; if it still does not fit (an object written into etcd
// by other means), that is an error of the object and no reason to stop serving.
func Read[T any](obj object.Object) (*T, field.ErrorList) {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, typed); err != nil {
		return nil, field.ErrorList{field.Invalid(field.NewPath(""), nil, err.Error())}
	}
	return typed, nil
}
