package cel

import (
	"fmt"
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

func (l *setList) Equal(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	switch {
	case !ok:
		return types.MaybeNoSuchOverloadErr(other)
	case l.Size() != o.Size():
		return types.False
	}
	mine, err := l.set()
	if err != nil {
		return err
	}
	return hasMembers(mine, o)
}

func (l *setList) Add(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return union(l.values(), o)
}

// setSum is the union of sets.
type setSum struct{ traits.Lister }

func (s setSum) Equal(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	switch {
	case !ok:
		return types.MaybeNoSuchOverloadErr(other)
	case s.Size() != o.Size():
		return types.False
	}
	mine, err := membersOf(s)
	if err != nil {
		return err
	}
	return hasMembers(mine, o)
}

func (s setSum) Add(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return union(valuesOf(s), o)
}

// valuesOf returns the elements of a list in a new slice.
func valuesOf(l traits.Lister) (out []ref.Val) {
	for it := l.Iterator(); it.HasNext() == types.True; {
		out = append(out, it.Next())
	}
	return out
}

// union returns elements, which it owns, with the members of other that they lack.
func union(elements []ref.Val, other traits.Lister) ref.Val {
	known, err := membersOf(listOfValues(elements))
	if err != nil {
		return err
	}
	for it := other.Iterator(); it.HasNext() == types.True; {
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

// hasMembers reports whether the list other consists of the members of a set.
func hasMembers(set map[any]struct{}, other traits.Lister) ref.Val {
	seen := make(map[any]struct{}, len(set))
	for it := other.Iterator(); it.HasNext() == types.True; {
		key, err := member(it.Next())
		if err != nil {
			return err
		}
		if _, ok := set[key]; !ok {
			return types.False
		}
		seen[key] = struct{}{}
	}
	return types.Bool(len(seen) == len(set))
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
