package manifest

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/admit/registration"
)

// kind is a kind of manifests. T is a pointer to an object.
type kind[T metav1.Object] struct {
	name string
	// items returns the objects in a decoded object, which may be a list; false if it is of another kind.
	items func(obj runtime.Object) ([]T, bool)
	// defaults sets defaults in an object's JSON, in place.
	defaults func(obj map[string]any)
	// check returns the errors that the API would return for a new object, except for its metadata.
	check func(obj T) field.ErrorList
	// limits returns the first error that only a manifest can have.
	limits func(obj T, file string) error
}

// objects collects the objects of a kind in a folder.
type objects[T metav1.Object] struct {
	kind  kind[T]
	files map[string]string // of the objects, by name
	all   []T
}

func collect[T metav1.Object](k kind[T]) *objects[T] {
	return &objects[T]{kind: k, files: map[string]string{}}
}

// add adds the objects in a decoded object. It returns false if the object is of another kind.
func (o *objects[T]) add(obj runtime.Object, file string) (known bool, err error) {
	items, known := o.kind.items(obj)
	for _, item := range items {
		if err := o.kind.admit(item); err != nil {
			return known, fmt.Errorf("%s %q: %w", o.kind.name, item.GetName(), err)
		}
	}
	for _, item := range items {
		if err := o.name(item.GetName(), file); err != nil {
			return known, err
		}
		if err := o.kind.limits(item, file); err != nil {
			return known, err
		}
		o.all = append(o.all, item)
	}
	return known, nil
}

// admit completes and validates an object as the API does with a new one.
func (k kind[T]) admit(obj T) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err
	}
	k.defaults(content)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj); err != nil {
		return err
	}
	errs := validation.ValidateObjectMetaAccessor(obj, false, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, k.check(obj)...).ToAggregate()
}

// name checks the name of an object, and records its file.
func (o *objects[T]) name(name, file string) error {
	switch previous, taken := o.files[name]; {
	case name == "":
		return fmt.Errorf("resource in file %q must have a name", file)
	case !strings.HasSuffix(name, registration.ManifestSuffix):
		return fmt.Errorf("%q in file %q must have a name ending with %q", name, file, registration.ManifestSuffix)
	case taken:
		return fmt.Errorf("duplicate name %q found in file %q (previously seen in %q)", name, file, previous)
	}
	o.files[name] = file
	return nil
}

// sorted returns the objects in the order of their names.
func (o *objects[T]) sorted() []T {
	slices.SortFunc(o.all, func(x, y T) int { return strings.Compare(x.GetName(), y.GetName()) })
	return o.all
}

// pointers returns the items of a list.
func pointers[T any](items []T) (out []*T) {
	for i := range items {
		out = append(out, &items[i])
	}
	return out
}
