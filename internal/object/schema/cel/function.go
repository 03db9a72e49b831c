package cel

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"

	"github.com/bowsprit/bowsprit/internal/object/schema/cel/plain"
)

// Bounds of a Function.
const (
	functionText = 8 << 10 // bytes of the expression
	functionCost = 100_000 // of one call
)

// Function is an expression of the variable values, a list, that computes a value. It is immutable and safe for
// concurrent use.
type Function struct{ program cel.Program }

// functionEnvironment declares the variables of functions.
var functionEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	return kubeEnvironments().StoredExpressionsEnv().Extend(cel.Variable("values", cel.ListType(cel.DynType)),
		cel.Variable("value", cel.DynType))
})

// NewFunction compiles an expression. Its functions are the functions of validation rules.
func NewFunction(source string) (*Function, error) {
	if len(source) > functionText {
		return nil, fmt.Errorf("the expression has %d bytes, at most %d are allowed", len(source), functionText)
	}
	env, err := functionEnvironment()
	if err != nil {
		return nil, err
	}
	checked, issues := env.Compile(source)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	program, err := env.Program(checked, cel.CostLimit(functionCost), cel.CostTracking(callCosts{}))
	return &Function{program}, err
}

// Call returns the result for decoded JSON; value is the first of values. The result is decoded JSON, too.
func (f *Function) Call(values []any) (out any, err error) {
	defer recoverTo(&err)
	v, _, err := f.program.Eval(map[string]any{"values": values, "value": values[0]})
	if err != nil {
		return nil, err
	}
	return plain.JSON(v)
}
