// Package selector checks the CEL expressions with which resource claims and device classes select devices.
//
// It stands below the checks of the built-in kinds. k8s.io/dynamic-resource-allocation declares devices in CEL and the
// cost limit, and the scheduler evaluates expressions with it; this package is its only importer, and evaluates
// nothing.
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

// Verdict is the result for an expression: valid, or an error in one of the fields.
type Verdict struct {
	// Invalid is why the expression does not compile or is not boolean, "" if it is valid.
	Invalid string
	// Costly is true if the expression takes too long in the worst case.
	Costly bool
	// Err is an unexpected error.
	Err error
}

// New validates a new expression of a client: it may use only features that the previous release also has.
func New(expression string) Verdict { return compile(expression, environment.NewExpressions) }

// Stored validates a stored expression.
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
