package rule

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"github.com/bowsprit/bowsprit/internal/object"
)

// storeAs makes the Store rule of a kind with the Go type T: it drops empty JSON lists and maps that the protobuf form,
// in which kube-apiserver stores built-in kinds, does not distinguish from missing ones. A list or map without
// omitempty becomes null. The type is analyzed with the first object: for all kinds it would delay the start by 10 ms.
func storeAs[T any]() func(object.Object) {
	form := sync.OnceValue(func() *hollow { return hollowOf(reflect.TypeFor[T](), map[reflect.Type]bool{}) })
	return func(obj object.Object) {
		if h := form(); h != nil {
			h.fill(obj)
		}
	}
}

// hollow describes the changes of a Go type's values on their way through protobuf. nil means no changes.
type hollow struct {
	// fields are the fields of a struct with changes, by JSON name.
	fields map[string]*hollow
	// each is for the elements of a list, or the values of a map.
	each *hollow
	// null is true for a list or map that becomes null if it is empty.
	null bool
	// bytes is true for a map with null values that become "".
	bytes bool
}

// hollowOf returns the changes of values of type t. above are the types that contain t; the only recursive built-in
// kind is CustomResourceDefinition, which is stored as JSON.
func hollowOf(t reflect.Type, above map[reflect.Type]bool) *hollow {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if above[t] || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
		return nil
	}
	switch t.Kind() {
	case reflect.Slice:
		return elements(hollowOf(t.Elem(), above))
	case reflect.Map:
		if t.Elem().Kind() == reflect.Slice && t.Elem().Elem().Kind() == reflect.Uint8 {
			return elements(&hollow{bytes: true})
		}
		return elements(hollowOf(t.Elem(), above))
	case reflect.Struct:
		above[t] = true
		defer delete(above, t)
		fields := map[string]*hollow{}
		for i := range t.NumField() {
			f := t.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			h := hollowOf(f.Type, above)
			switch {
			case name == "" && f.Anonymous:
				if h != nil {
					for k, v := range h.fields {
						fields[k] = v
					}
				}
				continue
			case !strings.Contains(options, "omit") &&
				(f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() != reflect.Uint8 ||
					f.Type.Kind() == reflect.Map):
				if h == nil {
					h = &hollow{}
				}
				h.null = true
			}
			if h != nil {
				fields[name] = h
			}
		}
		if len(fields) > 0 {
			return &hollow{fields: fields}
		}
	}
	return nil
}

func elements(each *hollow) *hollow {
	if each == nil {
		return nil
	}
	return &hollow{each: each}
}

// fill changes v, decoded JSON, in place, and returns its replacement.
func (h *hollow) fill(v any) any {
	switch v := v.(type) {
	case nil:
		if h.bytes {
			return ""
		}
	case map[string]any:
		if h.null && len(v) == 0 {
			return nil
		}
		for name, below := range h.fields {
			if e, ok := v[name]; ok {
				v[name] = below.fill(e)
			}
		}
		if h.each != nil {
			for k, e := range v {
				v[k] = h.each.fill(e)
			}
		}
	case []any:
		if h.null && len(v) == 0 {
			return nil
		}
		if h.each != nil {
			for i, e := range v {
				v[i] = h.each.fill(e)
			}
		}
	}
	return v
}
