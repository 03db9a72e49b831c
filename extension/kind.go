package extension

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	kinds "github.com/bowsprit/bowsprit/internal/feature/extension"
	"github.com/bowsprit/bowsprit/internal/object"
)

// Kind is one kind of object. Either Manifest is set, or Of has made the kind from a Go type. All functions are called
// by many goroutines at a time.
type Kind struct {
	// Manifest is a CustomResourceDefinition (apiextensions.k8s.io/v1) in YAML or JSON, with all features of such a
	// definition: schemas with defaults and CEL rules, columns, subresources, several versions and their conversion.
	Manifest string
	// Default fills in defaults that the schema cannot express. It runs on every write and on reads, so it must depend
	// only on the object.
	Default func(obj *unstructured.Unstructured)
	// Validate returns all errors of an object that satisfies its schema. old is nil for a new object. Validate changes
	// neither object.
	Validate func(obj, old *unstructured.Unstructured) field.ErrorList
	// Paths are served below each object, besides status and scale: ".../flunders/NAME/PATH".
	Paths map[string]Path
	// Storage is where the objects are kept; nil is the store of the server.
	Storage Storage
	// Poll is the interval in which the server lists Storage again to find changes by other programs. 0 means never,
	// for a Storage without other writers.
	Poll time.Duration

	made *made // by Of
}

// made is the result of Of for a Go type.
type made struct {
	definition object.Object
	err        error
	fill       func(obj object.Object)
	check      func(obj, old object.Object) field.ErrorList
}

// Path serves requests below an object: a custom verb, a log, a proxy.
type Path struct {
	// Methods are the methods that it serves, such as POST; the default is GET. The user needs the verb of the method
	// (create for POST) for the resource "flunders/PATH".
	Methods []string
	// LongRunning lifts the time limit of requests, for streams.
	LongRunning bool
	// Serve answers a request. obj is the object, read only. The client gets the returned error: an apierrors.APIStatus
	// unchanged, any other error as a 500. If Serve returns an error, it must not have written to w.
	Serve func(ctx context.Context, obj *unstructured.Unstructured, w http.ResponseWriter, r *http.Request) error
}

// internal returns the kind as the server takes it.
func (k *Kind) internal() (*kinds.Kind, error) {
	out := &kinds.Kind{
		Storage: k.Storage, Poll: k.Poll, Paths: map[string]kinds.Path{},
		Default: map[string]func(object.Object){}, Validate: map[string]kinds.Check{},
	}
	_, out.ReadOnly = k.Storage.(readOnly)
	fill, check := k.fill(), k.check()
	switch {
	case k.made != nil && k.Manifest != "":
		return nil, errors.New("a kind has a manifest and a Go type: one of them is enough")
	case k.made != nil:
		if k.made.err != nil {
			return nil, k.made.err
		}
		out.Definition, fill, check = k.made.definition, k.made.fill, k.made.check
	default:
		if err := yaml.Unmarshal([]byte(k.Manifest), &out.Definition); err != nil {
			return nil, fmt.Errorf("manifest of a kind: %w", err)
		}
		out.Definition = object.WholeNumbers(out.Definition).(object.Object)
	}
	for _, version := range object.Objects(object.List(out.Definition, "spec", "versions")) {
		name := object.String(version, "name")
		if fill != nil {
			out.Default[name] = fill
		}
		if check != nil {
			out.Validate[name] = func(obj, old object.Object, _ string) field.ErrorList { return check(obj, old) }
		}
	}
	for name, p := range k.Paths {
		out.Paths[name] = kinds.Path{Methods: p.Methods, LongRunning: p.LongRunning,
			Serve: func(ctx context.Context, obj object.Object, w http.ResponseWriter, r *http.Request) error {
				return p.Serve(ctx, &unstructured.Unstructured{Object: obj}, w, r)
			}}
	}
	return out, nil
}

func (k *Kind) fill() func(object.Object) {
	if k.Default == nil {
		return nil
	}
	return func(obj object.Object) { k.Default(&unstructured.Unstructured{Object: obj}) }
}

func (k *Kind) check() func(obj, old object.Object) field.ErrorList {
	if k.Validate == nil {
		return nil
	}
	return func(obj, old object.Object) field.ErrorList {
		if old == nil {
			return k.Validate(&unstructured.Unstructured{Object: obj}, nil)
		}
		return k.Validate(&unstructured.Unstructured{Object: obj}, &unstructured.Unstructured{Object: old})
	}
}

// toObject returns a Go value as decoded JSON.
func toObject(v any) (object.Object, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(v)
}
