package builtin

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/catalog"
)

type errorList = field.ErrorList

// decode is the Decode rule of every built-in kind: it brings obj into the form that it has after being read into the
// kind's Go type and written again, which is what kube-apiserver stores and serves. Empty maps are gone, times are in UTC,
// fields without omitempty are there.
//
// An error is worded as encoding/json words it, for example
// "json: cannot unmarshal number into Go struct field ConfigMap.data of type string". Unknown fields are the schema's to
// report; none are left here.
func decode[T any](obj catalog.Object) ([]string, error) {
	typed := new(T)
	if err := unmarshal(obj, typed); err != nil {
		return nil, err
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	clear(obj)
	maps.Copy(obj, out)
	return nil, nil
}

// unmarshal goes through JSON, because that is where the errors come from that clients know. Assigning the fields
// directly, as runtime.DefaultUnstructuredConverter does, would take half the time and let a number that is too large for
// an int32 pass.
func unmarshal(obj catalog.Object, typed any) error {
	data, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("encode for decoding: %w", err)
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, typed)
}

// judge makes a Validate rule of a function on the Go type.
func judge[T any](f func(*T) errorList) func(catalog.Object) errorList {
	return func(obj catalog.Object) errorList {
		typed, errs := read[T](obj)
		if errs != nil {
			return errs
		}
		return f(typed)
	}
}

// judgeUpdate makes a ValidateUpdate rule of a function on the Go type.
func judgeUpdate[T any](f func(obj, old *T, subresource string) errorList) func(obj, old catalog.Object, subresource string) errorList {
	return func(obj, old catalog.Object, subresource string) errorList {
		typed, errs := read[T](obj)
		if errs != nil {
			return errs
		}
		was, errs := read[T](old)
		if errs != nil {
			return errs
		}
		return f(typed, was, subresource)
	}
}

// read returns obj as its Go type. obj has been through decode; if it does not fit all the same (an object written into
// etcd by other means), that is an error of the object and not a reason to stop serving.
func read[T any](obj catalog.Object) (*T, errorList) {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, typed); err != nil {
		return nil, errorList{field.Invalid(field.NewPath(""), nil, err.Error())}
	}
	return typed, nil
}
