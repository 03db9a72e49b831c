package quantity

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A shape describes the location of quantities in the values of a Go type. A nil shape has none.
type shape struct {
	quantity bool     // the value itself is a quantity
	values   *shape   // of a list or a map
	isMap    bool     // a map and not a list
	members  []member // of a struct
}

// member is a field of a struct that holds quantities.
type member struct {
	name   string // in JSON; "" if the fields belong to the surrounding struct
	number int32  // in protobuf
	shape  *shape
}

// maxMembers is the number of fields with quantities that a struct may have.
const maxMembers = 32

var quantityType = reflect.TypeFor[resource.Quantity]()

// shapes has the shape of each type that was asked for.
var shapes sync.Map

// shapeOf returns the shape of a type of the Kubernetes API or a pointer to it.
func shapeOf(t reflect.Type) *shape {
	if known, ok := shapes.Load(t); ok {
		return known.(*shape)
	}
	s := newShape(t, map[reflect.Type]bool{})
	shapes.Store(t, s)
	return s
}

// Held reports whether values of a Go type have quantities.
func Held(t reflect.Type) bool { return shapeOf(t) != nil }

// newShape makes a shape. around are the types that t stands in: a type that holds itself gets no deeper shape, for no
// such type has quantities.
func newShape(t reflect.Type, around map[reflect.Type]bool) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == quantityType:
		return &shape{quantity: true}
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Map:
		if values := newShape(t.Elem(), around); values != nil {
			return &shape{values: values, isMap: t.Kind() == reflect.Map}
		}
		return nil
	case t.Kind() != reflect.Struct || around[t]:
		return nil
	}
	around[t] = true
	defer delete(around, t)
	var s shape
	for i := range t.NumField() {
		f := t.Field(i)
		within := newShape(f.Type, around)
		if within == nil {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && !f.Anonymous && !strings.Contains(options, "inline") {
			name = f.Name
		}
		s.members = append(s.members, member{name: name, number: protobufNumber(f.Tag), shape: within})
	}
	if s.members == nil {
		return nil
	}
	if len(s.members) > maxMembers {
		panic(fmt.Sprintf("%v has quantities in more than %d fields", t, maxMembers))
	}
	return &s
}

// protobufNumber returns the number of a field in protobuf, 0 if it has none.
func protobufNumber(tag reflect.StructTag) int32 {
	_, rest, _ := strings.Cut(tag.Get("protobuf"), ",")
	number, _, _ := strings.Cut(rest, ",")
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}
