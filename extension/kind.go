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
	// Manifest is a CustomResourceDefinition (apiextensions.k8s.io/v1) in YAML or JSON, with all that such a definition
	// may say: schemas with defaults and CEL rules, columns, subresources, several versions and their conversion.
	Manifest string
	// Default fills in what the defaults of the schema cannot say. It runs on every write and on reads, so it depends
	// on nothing but the object.
	Default func(obj *unstructured.Unstructured)
	// Validate returns everything that is wrong with an object whose schema is satisfied. old is nil for a new object.
	// Neither is changed.
	Validate func(obj, old *unstructured.Unstructured) field.ErrorList
	// Paths are answered below each object, beside status and scale: ".../flunders/NAME/PATH".
	Paths map[string]Path
	// Storage is where the objects are kept; nil is the store of the server.
	Storage Storage
	// Poll is how often Storage is listed again to find out what others have changed there; 0 is never, for a Storage
	// that no one else writes to.
	Poll time.Duration

	made *made // by Of
}

// made is what Of derives from a Go type.
type made struct {
	definition object.Object
	err        error
	fill       func(obj object.Object)
	check      func(obj, old object.Object) field.ErrorList
}

// Path answers requests below an object: a verb of its own, a log, a proxy.
type Path struct {
	// Methods that it answers, such as POST; none is GET. Who asks needs the verb of the method (create for POST) for
	// the resource "flunders/PATH".
	Methods []string
	// LongRunning lifts the time limit of requests, for what streams.
	LongRunning bool
	// Serve answers. obj is the object, read only. An error is what the client gets: one that is an
	// apierrors.APIStatus as it is, any other as a 500; Serve has then written nothing.
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
