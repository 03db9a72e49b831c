package cel

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// mapList is a list of type map: order does not matter for equality, and + replaces elements with the same keys.
type mapList struct {
	list
	keys  []string
	byKey map[any]any // made on first use
}

var (
	_ traits.Lister = (*mapList)(nil)
	_ traits.Lister = mapSum{}
)

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
	return joined(l.keys, func(key string) any { return e[key] })
}

// joined returns the identity of an element with the values of keys, which value returns by their escaped names.
func joined(keys []string, value func(string) any) any {
	of := func(i int) any { return value(escapedKey(keys[i])) }
	switch len(keys) {
	case 1:
		return of(0)
	case 2:
		return [2]any{of(0), of(1)}
	case 3:
		return [3]any{of(0), of(1), of(2)}
	}
	all := make([]any, len(keys))
	for i := range keys {
		all[i] = of(i)
	}
	return fmt.Sprintf("%#v", all)
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
	seen := make(map[any]struct{}, len(index))
	for it := o.Iterator(); it.HasNext() == types.True; {
		v := it.Next()
		key := l.keyOf(v.Value())
		mine, ok := index[key]
		if !ok {
			return types.False
		}
		if eq := valueOf(mine, l.item).Equal(v); eq != types.True {
			return eq // false or an error
		}
		seen[key] = struct{}{}
	}
	return types.Bool(len(seen) == len(index))
}

func (l *mapList) Add(other ref.Val) ref.Val { return merged(l.values(), other, l.keys) }

// mapSum is the sum of lists of type map.
type mapSum struct {
	traits.Lister
	keys []string
}

func (s mapSum) Equal(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if s.Size() != o.Size() {
		return types.False
	}
	index := map[any]ref.Val{}
	for _, e := range valuesOf(s) {
		index[identity(e, s.keys)] = e
	}
	seen := make(map[any]struct{}, len(index))
	for it := o.Iterator(); it.HasNext() == types.True; {
		v := it.Next()
		key := identity(v, s.keys)
		mine, ok := index[key]
		if !ok {
			return types.False
		}
		if eq := mine.Equal(v); eq != types.True {
			return eq // false or an error
		}
		seen[key] = struct{}{}
	}
	return types.Bool(len(seen) == len(index))
}

func (s mapSum) Add(other ref.Val) ref.Val { return merged(valuesOf(s), other, s.keys) }

// merged returns elements, which it owns, with the elements of other: one with the keys of an element replaces it, the
// others follow.
func merged(elements []ref.Val, other ref.Val, keys []string) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	at := make(map[any]int, len(elements))
	for i, e := range elements {
		at[identity(e, keys)] = i
	}
	for it := o.Iterator(); it.HasNext() == types.True; {
		v := it.Next()
		if i, ok := at[identity(v, keys)]; ok {
			elements[i] = v
		} else {
			elements = append(elements, v)
		}
	}
	return mapSum{listOfValues(elements), keys}
}

// identity returns the identity of an element of a sum.
func identity(element ref.Val, keys []string) any {
	return joined(keys, func(key string) any {
		fields, ok := element.(traits.Mapper)
		if !ok {
			return nil
		}
		v, found := fields.Find(types.String(key))
		if !found || v == nil || types.IsUnknownOrError(v) {
			return nil
		}
		return comparableOf(v.Value())
	})
}
