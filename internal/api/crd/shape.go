package crd

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/api/crd/own"
	"github.com/bowsprit/bowsprit/internal/object/sensitive"
)

// shape describes a Go type as decoded JSON. It does not change after construction; recursive types have cyclic shapes.
type shape struct {
	form    form
	typ     reflect.Type
	elem    *shape // of a list or map, or the schema inside a union
	members map[string]*member
	// obligatory lists the members that are always written.
	obligatory []*member
}

// member is one field of a struct.
type member struct {
	name      string
	index     []int
	pointer   bool // absence differs from the zero value
	omitEmpty bool
	omitZero  bool
	shape     *shape
	untyped   bool // the Go type lacks the field: it exists only in the object
}

type form int

const (
	structForm form = iota
	mapForm
	listForm
	stringForm
	boolForm
	intForm
	floatForm
	rawForm    // apiextensionsv1.JSON: any value, kept unchanged
	opaqueForm // a type with a custom decoder: a time, the fields of a managedFields entry, bytes
	// The unions below have custom decoders in Kubernetes, without strictness: unknown fields inside them are dropped
	// silently.
	schemaOrListForm
	schemaOrBoolForm
	schemaOrStringsForm
)

// definitionShape is the shape of a whole definition, made once.
var definitionShape = sync.OnceValue(func() *shape {
	return shapes{}.of(reflect.TypeFor[apiextensionsv1.CustomResourceDefinition]())
})

// schemaType is the Go type of one OpenAPI schema.
var schemaType = reflect.TypeFor[apiextensionsv1.JSONSchemaProps]()

// schemaShape returns the shape of one OpenAPI schema.
var schemaShape = sync.OnceValue(func() *shape {
	return shapes{}.of(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]())
})

// shapes holds the shapes under construction, by type, so that recursion ends.
type shapes map[reflect.Type]*shape

func (all shapes) of(t reflect.Type) *shape {
	if s := all[t]; s != nil {
		return s
	}
	s := &shape{typ: t}
	all[t] = s
	switch t {
	case reflect.TypeFor[apiextensionsv1.JSON]():
		s.form = rawForm
		return s
	case reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():
		s.form, s.elem = schemaOrListForm, all.of(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]())
		return s
	case reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():
		s.form, s.elem = schemaOrBoolForm, all.of(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]())
		return s
	case reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray]():
		s.form, s.elem = schemaOrStringsForm, all.of(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]())
		return s
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		s.form = opaqueForm
		return s
	}
	switch t.Kind() {
	case reflect.Struct:
		s.form = structForm
		s.members = map[string]*member{}
		all.members(s, t, nil)
		all.keyword(s, t)
		for _, m := range s.members {
			// omitempty does not hold for structs.
			if !m.pointer && !m.omitZero && (!m.omitEmpty || m.shape.typ.Kind() == reflect.Struct) {
				s.obligatory = append(s.obligatory, m)
			}
		}
	case reflect.Map:
		s.form, s.elem = mapForm, all.of(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			s.form = opaqueForm
		} else {
			s.form, s.elem = listForm, all.of(t.Elem())
		}
	case reflect.String:
		s.form = stringForm
	case reflect.Bool:
		s.form = boolForm
	case reflect.Int32, reflect.Int64:
		s.form = intForm
	case reflect.Float64:
		s.form = floatForm
	default:
		panic(fmt.Sprintf("crd: no JSON shape for %v", t))
	}
	return s
}

// keyword adds the members that the Go type lacks.
func (all shapes) keyword(s *shape, t reflect.Type) {
	keywords := map[reflect.Type][]string{
		schemaType: {sensitive.Keyword, own.ImmutableKeyword},
		reflect.TypeFor[apiextensionsv1.CustomResourceColumnDefinition](): {own.ColumnKeyword},
	}
	for _, name := range keywords[t] {
		anything := all.of(reflect.TypeFor[apiextensionsv1.JSON]())
		s.members[name] = &member{name: name, omitZero: true, untyped: true, shape: anything}
	}
}

// members adds the fields of struct type t, including fields of embedded structs without a name.
func (all shapes) members(s *shape, t reflect.Type, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clone(index), i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && f.Anonymous:
			all.members(s, f.Type, at)
		default:
			m := &member{
				name: name, index: at, omitEmpty: strings.Contains(options, "omitempty"),
				omitZero: strings.Contains(options, "omitzero"),
			}
			target := f.Type
			if target.Kind() == reflect.Pointer {
				m.pointer, target = true, target.Elem()
			}
			m.shape = all.of(target)
			s.members[name] = m
		}
	}
}
