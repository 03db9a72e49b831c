package cel

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// activation gives expressions the values of self and oldSelf.
type activation struct {
	self, old ref.Val // old is nil if there is none
}

var _ interpreter.Activation = (*activation)(nil)

func (a *activation) ResolveName(name string) (any, bool) {
	switch name {
	case selfName:
		return a.self, true
	case oldSelfName:
		return a.old, a.old != nil
	}
	return nil, false
}

func (a *activation) Parent() interpreter.Activation { return nil }

// activations holds the activations of one value: rules with optionalOldSelf see oldSelf as an optional value.
type activations struct {
	plain, optional activation
}

func newActivations(b *branch, c *compiledRules, v, old any) (a activations) {
	p := place{b.node, b.resource || b.node.Embedded}
	a.plain.self = valueOf(v, p)
	a.optional.self = a.plain.self
	if !c.usesOldSelf {
		return a
	}
	a.optional.old = types.OptionalNone
	if old != nil {
		a.plain.old = valueOf(old, p)
		a.optional.old = types.OptionalOf(a.plain.old)
	}
	return a
}
