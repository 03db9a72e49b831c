package cel

import (
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	kubeenv "k8s.io/apiserver/pkg/cel/environment"
)

// Bounds returns options for programs with Kubernetes' functions. With them, a call ends with the evaluation's context
// while it matches a pattern, and fails before it takes much more time or memory than its cost accounts for.
//
// cel-go counts the cost of a call after the call.
func Bounds() []cel.ProgramOption {
	return []cel.ProgramOption{cel.CustomDecorator(boundCalls), cel.OptimizeRegex(literalPatterns()...)}
}

// boundCalls is a decorator that replaces calls of expensive functions by bounded ones.
func boundCalls(i interpreter.Interpretable) (interpreter.Interpretable, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	if search := searches[call.Function()]; search != nil {
		return &boundedCall{call, len(call.Args()) == 2, func(frame *frame, args []ref.Val) ref.Val {
			return search(func() bool { return isInterrupted(frame) }, nil, args)
		}}, nil
	}
	if position := positions[call.Function()]; position != nil {
		if implementation := implementationOf(call); implementation != nil {
			return &boundedCall{call, len(call.Args()) == 2, func(_ *frame, args []ref.Val) ref.Val {
				if out := position(args); out != nil {
					return out
				}
				return implementation(args...)
			}}, nil
		}
	}
	if check := checks[call.Function()]; check != nil {
		if implementation := implementationOf(call); implementation != nil {
			return &boundedCall{call, len(call.Args()) == 2, func(_ *frame, args []ref.Val) ref.Val {
				if out := check(call, args); out != nil {
					return out
				}
				return implementation(args...)
			}}, nil
		}
	}
	return i, nil
}

// frame is the state of an evaluation, with its variables.
type frame = interpreter.ExecutionFrame

// boundedCall is a call with another implementation, which receives the frame of the evaluation.
type boundedCall struct {
	interpreter.InterpretableCall
	// both is true if an error of the first argument does not prevent the evaluation of the second, which counts its
	// cost: cel-go has a form of its own for calls with two arguments, except those with a compiled pattern.
	both           bool
	implementation func(frame *frame, args []ref.Val) ref.Val
}

// Eval implements interpreter.Interpretable.
func (c *boundedCall) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2. cel-go calls it, not Eval.
func (c *boundedCall) Exec(frame *frame) ref.Val {
	args := make([]ref.Val, len(c.Args()))
	for i, arg := range c.Args() {
		args[i] = arg.Exec(frame)
		if !c.both && types.IsUnknownOrError(args[i]) {
			return args[i]
		}
	}
	for _, arg := range args {
		if types.IsUnknownOrError(arg) {
			return arg
		}
	}
	return types.LabelErrNode(c.ID(), c.implementation(frame, args))
}

// isInterrupted reports whether the context of an evaluation has ended. cel-go looks at it only at each hundredth
// check, and we once in lookEvery.
func isInterrupted(frame *frame) bool {
	for range 128 {
		if frame.CheckInterrupt() {
			return true
		}
	}
	return false
}

// implementationOf returns Kubernetes' implementation of a call, nil if it has none of its own.
func implementationOf(call interpreter.InterpretableCall) func(args ...ref.Val) ref.Val {
	overload := implementations()[call.OverloadID()]
	if overload == nil {
		overload = implementations()[call.Function()]
	}
	switch {
	case overload == nil:
		return nil
	case overload.Unary != nil && len(call.Args()) == 1:
		return func(args ...ref.Val) ref.Val { return overload.Unary(args[0]) }
	case overload.Binary != nil && len(call.Args()) == 2:
		return func(args ...ref.Val) ref.Val { return overload.Binary(args[0], args[1]) }
	case overload.Function != nil:
		return overload.Function
	}
	return nil
}

// implementations returns the implementations of bounded functions, by overload and by function.
var implementations = sync.OnceValue(func() map[string]*functions.Overload {
	out := map[string]*functions.Overload{}
	env := kubeenv.MustBaseEnvSet(kubeenv.DefaultCompatibilityVersion()).StoredExpressionsEnv()
	for name, f := range env.Functions() {
		if checks[name] == nil && positions[name] == nil {
			continue
		}
		overloads, err := f.Bindings()
		if err != nil {
			panic(err)
		}
		for _, o := range overloads {
			out[o.Operator] = o
		}
	}
	return out
})
