// Package selector checks the CEL expressions with which resource claims and device classes select devices.
//
// It stands below the checks of the built-in kinds. What a device is in CEL, and what an expression may cost, is
// declared by k8s.io/dynamic-resource-allocation, which the scheduler runs the expressions with; this package is its
// only importer. Nothing here is evaluated: that is the scheduler's work.
//
// Both functions are pure and safe for concurrent use; the first call builds CEL's environment for the process.
package selector

import (
	"errors"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	devicecel "k8s.io/dynamic-resource-allocation/cel"
)

// Verdict says what is wrong with an expression: nothing, or one of the fields.
type Verdict struct {
	// Invalid is why the expression does not compile or is no question, "" if it is one.
	Invalid string
	// Costly is true of an expression that takes too long in the worst case.
	Costly bool
	// Err is what should not happen.
	Err error
}

// New validates an expression that a client writes: it may use what the release before this one knows too.
func New(expression string) Verdict { return compile(expression, environment.NewExpressions) }

// Stored validates an expression that was there before.
func Stored(expression string) Verdict { return compile(expression, environment.StoredExpressions) }

func compile(expression string, env environment.Type) Verdict {
	compiler := devicecel.GetCompiler(devicecel.Features{EnableConsumableCapacity: true}) // on by default in 1.36
	compiled := compiler.CompileCELExpression(expression, devicecel.Options{EnvType: &env})
	switch err := compiled.Error; {
	case err == nil:
		return Verdict{Costly: compiled.MaxCost > resourcev1.CELSelectorExpressionMaxCost}
	case err.Type == cel.ErrorTypeInvalid:
		return Verdict{Invalid: err.Detail}
	default:
		return Verdict{Err: errors.New(err.Detail)}
	}
}
