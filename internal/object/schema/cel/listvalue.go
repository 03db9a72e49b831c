package cel

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// list is an atomic list.
type list struct {
	elements []any
	item     typedNode
}

var _ traits.Lister = (*list)(nil)

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
	elements := l.values()
	for it := o.Iterator(); it.HasNext() == types.True; {
		elements = append(elements, it.Next())
	}
	return listOfValues(elements)
}

// values returns the elements as values of expressions.
func (l *list) values() []ref.Val {
	out := make([]ref.Val, len(l.elements))
	for i, e := range l.elements {
		out[i] = valueOf(e, l.item)
	}
	return out
}

// listOfValues returns an atomic list. A sum is a list of values: the elements of the second list may have another
// schema than the elements of the first.
func listOfValues(elements []ref.Val) traits.Lister {
	return types.NewRefValList(types.DefaultTypeAdapter, elements)
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
