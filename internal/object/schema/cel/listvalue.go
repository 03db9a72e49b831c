package cel

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// list is an atomic list.
type list struct {
	elements []any
	item     typedNode
}

var (
	_ traits.Lister = (*list)(nil)
	_ traits.Lister = (*setList)(nil)
	_ traits.Lister = (*mapList)(nil)
)

func (l *list) Get(index ref.Val) ref.Val {
	i, ok := index.(types.Int)
	if !ok {
		return types.ValOrErr(index, "unsupported index: %v", index)
	}
	if i < 0 || int(i) >= len(l.elements) {
		return types.NewErr("index out of bounds: %v", index)
	}
	return valueOf(l.elements[i], l.item)
}

func (l *list) Size() ref.Val { return types.Int(len(l.elements)) }

func (l *list) Iterator() traits.Iterator { return &listIterator{list: l} }

type listIterator struct {
	*list
	next int
}

func (it *listIterator) HasNext() ref.Val { return types.Bool(it.next < len(it.elements)) }

func (it *listIterator) Next() ref.Val {
	v := valueOf(it.elements[it.next], it.item)
	it.next++
	return v
}

func (l *list) Contains(v ref.Val) ref.Val {
	if types.IsUnknownOrError(v) {
		return v
	}
	var err ref.Val
	for _, e := range l.elements {
		eq := valueOf(e, l.item).Equal(v)
		if eq == types.True {
			return types.True
		}
		if _, ok := eq.(types.Bool); !ok && err == nil {
			err = types.MaybeNoSuchOverloadErr(eq)
		}
	}
	if err != nil {
		return err
	}
	return types.False
}

func (l *list) Equal(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if l.Size() != o.Size() {
		return types.False
	}
	for i := range l.elements {
		if eq := l.Get(types.Int(i)).Equal(o.Get(types.Int(i))); eq != types.True {
			return eq // false or an error
		}
	}
	return types.True
}

func (l *list) Add(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	elements := slices.Clip(l.elements)
	for it := o.Iterator(); it.HasNext() == types.True; {
		elements = append(elements, it.Next().Value())
	}
	return &list{elements, l.item}
}

func (l *list) ConvertToNative(t reflect.Type) (any, error) {
	if t.Kind() != reflect.Slice {
		return nil, fmt.Errorf("type conversion error from '%s' to '%s'", l.Type(), t)
	}
	if l.item.node.Type != "string" {
		return l.elements, nil
	}
	// Functions on lists of strings need strings, see kubernetes issue 117590.
	var result []string
	for _, e := range l.elements {
		s, ok := e.(string)
		if !ok {
			return nil, fmt.Errorf("expected all elements to be of type string, but got %T", e)
		}
		result = append(result, s)
	}
	return result, nil
}

func (l *list) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.ListType:
		return l
	case types.TypeType:
		return types.ListType
	}
	return types.NewErr("type conversion error from '%s' to '%s'", l.Type(), t.TypeName())
}

func (l *list) Type() ref.Type { return types.ListType }
func (l *list) Value() any     { return l.elements }

// setList is a list of type set: order does not matter for equality, and + is the union.
type setList struct {
	list
	members map[any]struct{} // made on first use
}

// set returns the members. Elements of sets are scalars or atomic; like Kubernetes, it fails on elements that are not
// scalars.
func (l *setList) set() map[any]struct{} {
	if l.members == nil {
		l.members = make(map[any]struct{}, len(l.elements))
		for _, e := range l.elements {
			l.members[e] = struct{}{}
		}
	}
	return l.members
}

func (l *setList) Equal(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if l.Size() != o.Size() {
		return types.False
	}
	set := l.set()
	for it := o.Iterator(); it.HasNext() == types.True; {
		if _, ok := set[it.Next().Value()]; !ok {
			return types.False
		}
	}
	return types.True
}

func (l *setList) Add(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	sum := &setList{list: list{slices.Clip(l.elements), l.item}}
	// The sum gets its own members: Kubernetes adds to those of l, which breaks later comparisons of l.
	set := sum.set()
	for it := o.Iterator(); it.HasNext() == types.True; {
		v := it.Next().Value()
		if _, ok := set[v]; !ok {
			set[v] = struct{}{}
			sum.elements = append(sum.elements, v)
		}
	}
	return sum
}

// mapList is a list of type map: order does not matter for equality, and + replaces elements with the same keys.
type mapList struct {
	list
	keys  []string
	byKey map[any]any // made on first use
}

func (l *mapList) index() map[any]any {
	if l.byKey == nil {
		l.byKey = make(map[any]any, len(l.elements))
		for _, e := range l.elements {
			l.byKey[l.keyOf(e)] = e
		}
	}
	return l.byKey
}

// keyOf returns the identity of an element. As in Kubernetes, keys are looked up by their escaped names.
func (l *mapList) keyOf(element any) any {
	e, ok := element.(map[string]any)
	if !ok {
		return types.NewErr("unexpected data format for element of array with x-kubernetes-list-type=map: %T", element)
	}
	switch len(l.keys) {
	case 1:
		return e[escapedKey(l.keys[0])]
	case 2:
		return [2]any{e[escapedKey(l.keys[0])], e[escapedKey(l.keys[1])]}
	case 3:
		return [3]any{e[escapedKey(l.keys[0])], e[escapedKey(l.keys[1])], e[escapedKey(l.keys[2])]}
	}
	key := make([]any, len(l.keys))
	for i, k := range l.keys {
		key[i] = e[escapedKey(k)]
	}
	return fmt.Sprintf("%v", key)
}

func escapedKey(name string) string {
	if escaped, ok := apiservercel.Escape(name); ok {
		return escaped
	}
	return name
}

func (l *mapList) Equal(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if l.Size() != o.Size() {
		return types.False
	}
	index := l.index()
	for it := o.Iterator(); it.HasNext() == types.True; {
		v := it.Next()
		mine, ok := index[l.keyOf(v.Value())]
		if !ok {
			return types.False
		}
		if eq := valueOf(mine, l.item).Equal(v); eq != types.True {
			return eq // false or an error
		}
	}
	return types.True
}

func (l *mapList) Add(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	elements := slices.Clone(l.elements)
	at := make(map[any]int, len(elements))
	for i, e := range elements {
		at[l.keyOf(e)] = i
	}
	for it := o.Iterator(); it.HasNext() == types.True; {
		v := it.Next().Value()
		if i, ok := at[l.keyOf(v)]; ok {
			elements[i] = v
		} else {
			elements = append(elements, v)
		}
	}
	return &mapList{list: list{elements, l.item}, keys: l.keys}
}
