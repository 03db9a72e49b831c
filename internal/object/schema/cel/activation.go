package cel

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// activation gives expressions the values of self and oldSelf.
type activation struct {
	self, old ref.Val // old is nil if there is none

	done  <-chan struct{} // ends loops; nil never does
	looks uint            // elements that loops have visited
}

// lookEvery is the number of elements between two looks at done.
const lookEvery = 64

// interrupted is the name that cel-go resolves after each element of a loop.
const interrupted = "#interrupted"

// ended reports, once in lookEvery calls, whether done is closed.
func (a *activation) ended() bool {
	if a.looks++; a.looks%lookEvery != 0 {
		return false
	}
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

var _ interpreter.Activation = (*activation)(nil)

func (a *activation) ResolveName(name string) (any, bool) {
	switch name {
	case selfName:
		return a.self, true
	case oldSelfName:
		return a.old, a.old != nil
	case interrupted:
		return a.ended(), true
	}
	return nil, false
}

func (a *activation) Parent() interpreter.Activation { return nil }

// activations holds the activations of one value: rules with optionalOldSelf see oldSelf as an optional value.
type activations struct {
	plain, optional activation
}

func newActivations(b *branch, c *compiledRules, v, old any, done <-chan struct{}) (a activations) {
	a.plain.done, a.optional.done = done, done
	p := typedNode{b.node, b.resource || b.node.Embedded}
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
