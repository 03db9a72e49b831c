package cel

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/api/equality"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/kube-openapi/pkg/validation/strfmt"

	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// valueOf returns decoded JSON as a value for expressions: a view, nothing is copied. Data that does not match the
// schema becomes an error value, which stops only the expressions that use it.
//
// Kubernetes' counterpart is k8s.io/apiserver/pkg/cel/common. There every access of a field rebuilds the schema of the
// whole object, and every name goes through a regular expression; that took most of the time of a rule.
func valueOf(v any, p typedNode) ref.Val {
	n := p.node
	if v == nil {
		if n.Nullable {
			return types.NullValue
		}
		return types.NewErr("invalid data, got null for schema with nullable=false")
	}
	if n.IntOrString {
		switch v := v.(type) {
		case string:
			return types.String(v)
		case int64:
			return types.Int(v)
		}
		return types.NewErr("invalid data, expected XIntOrString value to be either a string or integer")
	}
	switch n.Type {
	case "object":
		m, ok := v.(map[string]any)
		if !ok {
			return types.NewErr("invalid data, expected a map for the provided schema with type=object")
		}
		return &object{value: m, node: p, fields: p.resource || len(n.Properties) > 0}
	case "array":
		return listOf(v, n)
	case "string":
		return textOf(v, n.Format)
	case "number":
		switch v := v.(type) {
		case int64: // a whole number
			return types.Double(v)
		case float64:
			return types.Double(v)
		}
		return types.NewErr("invalid data, expected float, got %T", v)
	case "integer":
		if i, ok := v.(int64); ok {
			return types.Int(i)
		}
		return types.NewErr("invalid data, expected int, got %T", v)
	case "boolean":
		if b, ok := v.(bool); ok {
			return types.Bool(b)
		}
		return types.NewErr("invalid data, expected bool, got %T", v)
	}
	if n.PreserveUnknown {
		return &opaque{v}
	}
	return types.NewErr(
		"invalid type, expected object, array, number, integer, boolean or string, or no type with x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got %s", n.Type)
}

func listOf(v any, n *schema.Node) ref.Val {
	l, ok := v.([]any)
	if !ok {
		return types.NewErr("invalid data, expected an array for the provided schema with type=array")
	}
	if n.Items == nil {
		return types.NewErr("invalid array type, expected Items with a non-empty Schema")
	}
	plain := list{elements: l, item: typedNode{n.Items, n.Items.Embedded}}
	switch n.ListType {
	case "", "atomic":
		return &plain
	case "set":
		return &setList{list: plain}
	case "map":
		return &mapList{list: plain, keys: n.ListMapKeys}
	}
	return types.NewErr("invalid x-kubernetes-list-type, expected 'map', 'set' or 'atomic' but got %s", n.ListType)
}

func textOf(v any, format string) ref.Val {
	s, ok := v.(string)
	if !ok {
		return types.NewErr("invalid data, expected string, got %T", v)
	}
	switch format {
	case "duration":
		d, err := strfmt.ParseDuration(s)
		if err != nil {
			return types.NewErr("Invalid duration %s: %v", s, err)
		}
		return types.Duration{Duration: d}
	case "date":
		t, err := time.Parse(strfmt.RFC3339FullDate, s)
		if err != nil {
			return types.NewErr("Invalid date formatted string %s: %v", s, err)
		}
		return types.Timestamp{Time: t}
	case "date-time":
		t, err := strfmt.ParseDateTime(s)
		if err != nil {
			return types.NewErr("Invalid date-time formatted string %s: %v", s, err)
		}
		return types.Timestamp{Time: time.Time(t)}
	case "byte":
		var b strfmt.Base64
		if err := b.UnmarshalText([]byte(s)); err != nil {
			return types.NewErr("Invalid byte formatted string %s: %v", s, err)
		}
		return types.Bytes(b)
	}
	return types.String(s)
}

// opaque is data of unknown type. It can only be compared for equality.
type opaque struct {
	v any
}

func (o *opaque) ConvertToNative(t reflect.Type) (any, error) {
	return nil,
		fmt.Errorf("type conversion to '%s' not supported for values preserved by x-kubernetes-preserve-unknown-fields",
			t)
}

func (o *opaque) ConvertToType(t ref.Type) ref.Val {
	return types.NewErr(
		"type conversion to '%s' not supported for values preserved by x-kubernetes-preserve-unknown-fields",
		t.TypeName())
}

func (o *opaque) Equal(other ref.Val) ref.Val {
	return types.Bool(equality.Semantic.DeepEqual(o.v, other.Value()))
}

func (o *opaque) Type() ref.Type { return types.UnknownType }
func (o *opaque) Value() any     { return o.v }

// object is an object with declared fields, a map, or an object without known fields.
type object struct {
	value  map[string]any
	node   typedNode
	fields bool // keys are field names: escaped, and absent when null
}

var _ traits.Mapper = (*object)(nil)

// member returns the node of the value at key, if expressions can use it.
func (o *object) member(key string) (typedNode, bool) {
	n := o.node.node.AdditionalProperties
	if o.fields {
		n = o.node.property(key)
	}
	if n == nil {
		return typedNode{}, false
	}
	return typedNode{n, n.Embedded}, true
}

func (o *object) Find(key ref.Val) (ref.Val, bool) {
	s, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), true
	}
	k := string(s)
	if o.fields && strings.Contains(k, "__") {
		if k, ok = apiservercel.Unescape(k); !ok {
			return nil, false
		}
	}
	v, ok := o.value[k]
	if !ok || v == nil && o.fields {
		return nil, false
	}
	p, ok := o.member(k)
	if !ok {
		return nil, false
	}
	return valueOf(v, p), true
}

func (o *object) Get(key ref.Val) ref.Val {
	v, found := o.Find(key)
	if found {
		return v
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

func (o *object) Contains(key ref.Val) ref.Val {
	v, found := o.Find(key)
	if v != nil && types.IsUnknownOrError(v) {
		return v
	}
	return types.Bool(found)
}

// Iterator iterates over the keys in order; in Kubernetes the order is random.
func (o *object) Iterator() traits.Iterator {
	keys := make([]string, 0, len(o.value))
	for k := range o.value {
		if _, ok := o.member(k); ok {
			if o.fields {
				if escaped, ok := apiservercel.Escape(k); ok {
					k = escaped
				}
			}
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return &keyIterator{object: o, keys: keys}
}

type keyIterator struct {
	*object
	keys []string
}

func (it *keyIterator) HasNext() ref.Val { return types.Bool(len(it.keys) > 0) }

func (it *keyIterator) Next() ref.Val {
	key := types.String(it.keys[0])
	it.keys = it.keys[1:]
	return key
}

func (o *object) Size() ref.Val { return types.Int(len(o.value)) }

func (o *object) Equal(other ref.Val) ref.Val {
	m, ok := other.(traits.Mapper)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if o.Size() != m.Size() {
		return types.False
	}
	for key, value := range o.value {
		if _, ok := o.member(key); !ok {
			// Unknown fields are compared as they are.
			unknown, ok := other.(*object)
			if !ok {
				return types.MaybeNoSuchOverloadErr(other)
			}
			if v, ok := unknown.value[key]; ok && !equality.Semantic.DeepEqual(value, v) {
				return types.False
			}
			continue
		}
		v, found := o.Find(types.String(key))
		v2, found2 := m.Find(types.String(key))
		if found != found2 {
			return types.False
		}
		if !found {
			continue
		}
		if eq := v.Equal(v2); eq != types.True {
			return eq // false or an error
		}
	}
	return types.True
}

func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	if t.Kind() == reflect.Map {
		return o.value, nil
	}
	return nil, fmt.Errorf("type conversion error from '%s' to '%s'", o.Type(), t)
}

func (o *object) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return o
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("type conversion error from '%s' to '%s'", o.Type(), t.TypeName())
}

func (o *object) Type() ref.Type { return types.MapType }
func (o *object) Value() any     { return o.value }
