package extension

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// Type describes a kind whose objects are a Go type. T is a struct with metav1.TypeMeta (inline), metav1.ObjectMeta
// ("metadata"), and the other fields of the objects. The zero value is complete: the kind has the name of T, it has
// namespaces, and the subresource status if T has a field of that name.
//
// The schema is derived from T and its json tags. A field is required unless it may be left out (omitempty, omitzero, a
// pointer) or has a default. Further tags of fields:
//
//	schema:"minimum=1,maximum=5,default=3"  keywords: minimum, maximum, minLength, maxLength, minItems, maxItems,
//	                                        maxProperties, format, default, enum=A|B, listType, listMapKey, and, as
//	                                        the last one, pattern
//	rule:"self.startsWith('a')"             a CEL rule
//	column:"Title"                          a column of kubectl get; the age follows the last one
//	doc:"What it is for."                   the description, which kubectl explain shows
type Type[T any] struct {
	// Plural is the name in paths, "flunders" if empty: the kind in lower case, with an s.
	Plural string
	// ShortNames are abbreviations such as "fl", and Categories groups of kinds such as "all".
	ShortNames, Categories []string
	// Cluster makes a kind without namespaces.
	Cluster bool
	// Default fills in defaults that the tags cannot express. See Kind.Default.
	Default func(obj *T)
	// Validate returns the errors of an object beyond its schema; old is nil for a new object. See Kind.Validate.
	Validate func(obj, old *T) field.ErrorList
	// Schema may change the schema that was derived.
	Schema func(s *apiextensionsv1.JSONSchemaProps)
}

// Of makes a kind of a Go type, in a version such as "wardle.example.com/v1alpha1". The server's New returns the errors
// of the type.
func Of[T any](groupVersion string, t Type[T]) Kind {
	m := &made{}
	if m.definition, m.err = t.definition(groupVersion); m.err != nil {
		m.err = fmt.Errorf("kind %s of %s: %w", reflect.TypeFor[T](), groupVersion, m.err)
	}
	if t.Default != nil {
		m.fill = func(obj object.Object) { fill(obj, t.Default) }
	}
	if t.Validate != nil {
		m.check = func(obj, old object.Object) field.ErrorList { return check(obj, old, t.Validate) }
	}
	return Kind{made: m}
}

// definition returns the equivalent CustomResourceDefinition.
func (t Type[T]) definition(groupVersion string) (object.Object, error) {
	typ := reflect.TypeFor[T]()
	gv, err := schema.ParseGroupVersion(groupVersion)
	if err != nil {
		return nil, err
	}
	if typ.Kind() != reflect.Struct || typ.Name() == "" {
		return nil, errors.New("a kind is a struct type with a name")
	}
	if meta, ok := typ.FieldByName("ObjectMeta"); !ok || meta.Type != reflect.TypeFor[metav1.ObjectMeta]() {
		return nil, errors.New("it needs the embedded field metav1.ObjectMeta")
	}
	d := derivation{within: map[reflect.Type]bool{}}
	s, err := d.of(typ, "")
	if err != nil {
		return nil, err
	}
	if t.Schema != nil {
		t.Schema(s)
	}
	if len(d.columns) > 0 {
		d.columns = append(d.columns, apiextensionsv1.CustomResourceColumnDefinition{
			Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
		})
	}
	plural := t.Plural
	if plural == "" {
		plural = strings.ToLower(typ.Name()) + "s"
	}
	version := version(gv.Version, s, d.columns)
	scope := apiextensionsv1.NamespaceScoped
	if t.Cluster {
		scope = apiextensionsv1.ClusterScoped
	}
	obj, err := toObject(&apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{
			APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition",
		},
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + gv.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gv.Group, Scope: scope, Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version},
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: plural, Kind: typ.Name(), ShortNames: t.ShortNames, Categories: t.Categories,
			},
		},
	})
	if err == nil {
		delete(obj, "status")
		delete(object.Meta(obj), "creationTimestamp")
	}
	return obj, err
}

// version returns the one version of a definition.
func version(
	name string, s *apiextensionsv1.JSONSchemaProps, columns []apiextensionsv1.CustomResourceColumnDefinition,
) apiextensionsv1.CustomResourceDefinitionVersion {
	v := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: true, Storage: true, AdditionalPrinterColumns: columns,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: s},
	}
	if _, has := s.Properties["status"]; has {
		v.Subresources = &apiextensionsv1.CustomResourceSubresources{
			Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
		}
	}
	return v
}

// typed returns an object as a Go value.
func typed[T any](obj object.Object) (*T, error) {
	v := new(T)
	if quantity.Held(reflect.TypeFor[T]()) {
		obj = runtime.DeepCopyJSON(obj) // Object shortens quantities in place
		if err := quantity.Object(reflect.TypeFor[T](), obj); err != nil {
			return v, err
		}
	}
	return v, runtime.DefaultUnstructuredConverter.FromUnstructured(obj, v)
}

// fill lets a function complete an object. Fields that the function does not change stay the same, byte for byte.
func fill[T any](obj object.Object, by func(*T)) {
	v, err := typed[T](obj)
	if err != nil {
		return // validation reports the error
	}
	before, err := toObject(v)
	if err != nil {
		return
	}
	by(v)
	after, err := toObject(v)
	if err != nil {
		return
	}
	overlay(obj, before, after)
}

// overlay makes in obj the changes that lead from before to after. A field that only the Go type has, with its zero
// value, is in both and stays out.
func overlay(obj, before, after object.Object) {
	for key, value := range after {
		was, had := before[key]
		if had && reflect.DeepEqual(was, value) {
			continue
		}
		old, isOld := was.(object.Object)
		now, isNow := value.(object.Object)
		into, isInto := obj[key].(object.Object)
		if isOld && isNow && isInto {
			overlay(into, old, now)
		} else {
			obj[key] = value
		}
	}
	for key := range before {
		if _, has := after[key]; !has {
			delete(obj, key)
		}
	}
}

// check has a function validate an object.
func check[T any](obj, old object.Object, by func(obj, old *T) field.ErrorList) field.ErrorList {
	v, err := typed[T](obj)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath(""), nil, err.Error())}
	}
	if old == nil {
		return by(v, nil)
	}
	was, err := typed[T](old)
	if err != nil {
		return nil // the stored object no longer fits the type, so only the new one can be checked
	}
	return by(v, was)
}
