package cel

import (
	"context"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// activation gives expressions the values of self and oldSelf.
type activation struct {
	self, old ref.Val // old is nil if there is none

	done <-chan struct{} // ends loops; nil never does
}

// lookEvery is the number of elements that a loop visits between two looks at done.
const lookEvery = 64

// frame returns the frame of an evaluation. Close it after the evaluation.
func (a *activation) frame() (*frame, error) {
	f, err := interpreter.NewExecutionFrame(a)
	if err == nil && a.done != nil {
		err = f.SetContext(endsWith(a.done), lookEvery)
	}
	return f, err
}

// endsWith is a context that ends when the channel is closed. cel-go only looks at the channel.
type endsWith <-chan struct{}

func (endsWith) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
func (e endsWith) Done() <-chan struct{}                 { return e }
func (endsWith) Value(any) any                           { return nil }

func (e endsWith) Err() error {
	select {
	case <-e:
		return context.Canceled
	default:
		return nil
	}
}

// AfterFunc keeps context.WithCancel, which cel-go calls for functions that wait, from starting a goroutine. No
// function of an expression waits.
func (endsWith) AfterFunc(func()) (stop func() bool) { return func() bool { return true } }

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
