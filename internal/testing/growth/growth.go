// Package growth makes objects with one long list or map, to measure how the cost of a request grows with it.
//
// Lists finds every list and map of the built-in kinds in their Go types, and List.Object returns an object with any
// number of elements there. The elements are copies of an element of a valid object, or made from the Go type if no
// valid object has one. The functions are pure.
package growth

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// A Form is the content of the elements.
type Form string

// The elements are empty, equal, or differ in their names, keys and numbers.
const (
	Empty    Form = "empty"
	Equal    Form = "equal"
	Distinct Form = "distinct"
)

// Forms are all forms.
var Forms = []Form{Empty, Equal, Distinct}

// A List is a list or a map of a kind.
type List struct {
	// Name is the Go struct and its field.
	Name     string
	Resource *catalog.Resource
	Version  *catalog.Version

	base  map[string]any // a valid object
	path  []string       // the names of fields to the list; a list or map on the way has one element
	types []reflect.Type // of these fields
}

// Lists returns the lists and maps of kinds, each struct's once. file has valid objects in YAML; for a list that
// several objects have, an object with elements is chosen. A list that no object has gets elements from its Go type.
func Lists(t testing.TB, file string, resources []*catalog.Resource) []*List {
	t.Helper()
	s := search{seen: map[string]bool{}}
	objects := read(t, file)
	for _, s.anywhere = range []bool{false, true} {
		for _, obj := range objects {
			for _, r := range resources {
				for _, v := range r.Versions {
					if r.Kind == obj["kind"] && r.APIVersion(v) == obj["apiVersion"] && v.New != nil {
						s.of = List{Resource: r, Version: v, base: obj}
						s.fields(reflect.TypeOf(v.New()).Elem(), obj, nil, nil)
					}
				}
			}
		}
	}
	return s.out
}

func read(t testing.TB, file string) (objects []map[string]any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range strings.Split(string(data), "\n---\n") {
		in, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		var obj map[string]any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(in, &obj); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, obj)
	}
	return objects
}

type search struct {
	of       List
	seen     map[string]bool // by name
	anywhere bool            // also where the object has no elements
	out      []*List
}

// deepest is the length of the longest path.
const deepest = 12

func (s *search) fields(t reflect.Type, v any, path []string, types []reflect.Type) {
	if len(path) > deepest {
		return
	}
	in, _ := v.(map[string]any)
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case name == "" && strings.Contains(options, "inline"):
			s.fields(f.Type, v, path, types)
		default:
			s.field(fmt.Sprint(t, ".", f.Name), f.Type, in[name], append(slices.Clone(path), name), types)
		}
	}
}

// field looks at a field with its value in the valid object, or nil.
func (s *search) field(name string, t reflect.Type, v any, path []string, types []reflect.Type) {
	types = append(slices.Clone(types), t)
	t = behind(t)
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		if t.Elem().Kind() == reflect.Uint8 {
			return
		}
		e, ok := element(v)
		if !s.seen[name] && (ok || s.anywhere) {
			s.seen[name] = true
			l := s.of
			l.Name, l.path, l.types = name, path, types
			s.out = append(s.out, &l)
		}
		t, v = behind(t.Elem()), e
	}
	if t.Kind() == reflect.Struct && !opaque(t) {
		s.fields(t, v, path, types)
	}
}

func behind(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// opaque reports whether a struct is a single value in JSON, or contains itself.
func opaque(t reflect.Type) bool {
	switch t.Name() {
	case "Quantity", "Time", "MicroTime", "IntOrString", "RawExtension", "Duration", "FieldsV1", "JSON",
		"JSONSchemaProps":
		return true
	}
	return false
}

// element returns an element of a list or map.
func element(v any) (e any, ok bool) {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 {
			return v[0], true
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			return v[key], true
		}
	}
	return nil, false
}

// Object returns the valid object with n elements in the list. It has the name and namespace "default".
func (l *List) Object(n int, form Form) map[string]any {
	obj := runtime.DeepCopyJSON(l.base)
	meta := obj["metadata"].(map[string]any)
	meta["name"] = "default"
	if l.Resource.Namespaced {
		meta["namespace"] = "default"
	}
	set(obj, l.path, l.types, n, form)
	return obj
}

// Path returns the names of the fields to the list.
func (l *List) Path() []string { return l.path }

// Grow puts n elements into the list of an object of the same kind.
func (l *List) Grow(obj map[string]any, n int, form Form) { set(obj, l.path, l.types, n, form) }

// set puts n elements where a path ends, and makes the values on the way that are missing.
func set(in map[string]any, path []string, types []reflect.Type, n int, form Form) {
	t, name := behind(types[0]), path[0]
	if len(path) == 1 {
		in[name] = elements(t, in[name], n, form)
		return
	}
	many := t.Kind() == reflect.Slice || t.Kind() == reflect.Map
	next, ok := in[name].(map[string]any)
	if many {
		e, _ := element(in[name])
		next, ok = e.(map[string]any)
		t = t.Elem()
	}
	if !ok {
		if next, _ = filled(t, 0).(map[string]any); next == nil {
			next = map[string]any{}
		}
		switch behind(types[0]).Kind() {
		case reflect.Map:
			in[name] = map[string]any{"a": next}
		case reflect.Slice:
			in[name] = []any{next}
		default:
			in[name] = next
		}
	}
	set(next, path[1:], types[1:], n, form)
}

// elements returns a list or map of n elements, like an element of v.
func elements(t reflect.Type, v any, n int, form Form) any {
	like, ok := element(v)
	if !ok {
		like = filled(t.Elem(), 0)
	}
	if form == Empty {
		like = empty(like)
	}
	if t.Kind() == reflect.Map {
		out := make(map[string]any, n)
		for i := range n {
			out[fmt.Sprintf("a%d", i)] = vary(like, i, form == Distinct, "")
		}
		return out
	}
	out := make([]any, n)
	for i := range out {
		out[i] = vary(like, i, form == Distinct, "name")
	}
	return out
}
