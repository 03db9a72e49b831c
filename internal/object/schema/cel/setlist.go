package cel

import (
	"fmt"
	"maps"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// setList is a list of type set: order does not matter for equality, and + is the union.
type setList struct {
	list
	members map[any]struct{} // made on first use
}

var (
	_ traits.Lister = (*setList)(nil)
	_ traits.Lister = setSum{}
)

// set returns the members, or an error value if an element is not a scalar.
func (l *setList) set() (map[any]struct{}, ref.Val) {
	if l.members == nil {
		members, err := membersOf(&l.list)
		if err != nil {
			return nil, err
		}
		l.members = members
	}
	return l.members, nil
}

func (l *setList) Equal(other ref.Val) ref.Val { return equalSets(l, l.set, other) }

func (l *setList) Add(other ref.Val) ref.Val { return union(l.values(), other) }

// setSum is the union of sets.
type setSum struct{ traits.Lister }

func (s setSum) Equal(other ref.Val) ref.Val {
	return equalSets(s, func() (map[any]struct{}, ref.Val) { return membersOf(s) }, other)
}

func (s setSum) Add(other ref.Val) ref.Val { return union(valuesOf(s), other) }

// valuesOf returns the elements of a list in a new slice.
func valuesOf(l traits.Lister) (out []ref.Val) {
	for it := l.Iterator(); it.HasNext() == types.True; {
		out = append(out, it.Next())
	}
	return out
}

// union returns elements, which it owns, with the members of other that they lack.
func union(elements []ref.Val, other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	known, err := membersOf(listOfValues(elements))
	if err != nil {
		return err
	}
	for it := o.Iterator(); it.HasNext() == types.True; {
		v := it.Next()
		key, err := member(v)
		if err != nil {
			return err
		}
		if _, ok := known[key]; !ok {
			known[key] = struct{}{}
			elements = append(elements, v)
		}
	}
	return setSum{listOfValues(elements)}
}

// equalSets reports whether the list other consists of the members of l.
func equalSets(l traits.Lister, members func() (map[any]struct{}, ref.Val), other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	switch {
	case !ok:
		return types.MaybeNoSuchOverloadErr(other)
	case l.Size() != o.Size():
		return types.False
	}
	mine, err := members()
	if err != nil {
		return err
	}
	theirs, err := membersOf(o)
	if err != nil {
		return err
	}
	return types.Bool(maps.Equal(mine, theirs))
}

func membersOf(l traits.Lister) (map[any]struct{}, ref.Val) {
	members := map[any]struct{}{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		key, err := member(it.Next())
		if err != nil {
			return nil, err
		}
		members[key] = struct{}{}
	}
	return members, nil
}

// member returns the identity of an element of a set, or an error value if the element is not a scalar.
func member(element ref.Val) (any, ref.Val) {
	switch element.(type) {
	case traits.Lister, traits.Mapper:
		return nil, types.NewErr("listSet operations are only supported on lists of scalar values")
	}
	return comparableOf(element.Value()), nil
}

// comparableOf returns a value that may be the key of a Go map; equal values have equal keys.
func comparableOf(v any) any {
	if v != nil && !reflect.TypeOf(v).Comparable() {
		return fmt.Sprintf("%#v", v)
	}
	return v
}
