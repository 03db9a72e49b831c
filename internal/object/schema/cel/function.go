package cel

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Bounds of a Function.
const (
	functionText  = 8 << 10 // bytes of the expression
	functionCost  = 100_000 // of one call
	functionNodes = 100_000 // values in a result
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
	left := functionNodes
	return jsonOf(v, &left)
}

var errResult = errors.New("the result is not a JSON value, or too large")

// jsonOf returns the result of an expression as decoded JSON, of at most left values.
func jsonOf(v ref.Val, left *int) (any, error) {
	if *left--; *left < 0 {
		return nil, errResult
	}
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.String:
		return string(v), nil
	case types.Int:
		return int64(v), nil
	case types.Double:
		if n := int64(v); types.Double(n) == v {
			return n, nil
		}
		return float64(v), nil
	case types.Bool:
		return bool(v), nil
	case traits.Mapper:
		return objectOf(v, left)
	case traits.Lister:
		out := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			item, err := jsonOf(it.Next(), left)
			if err != nil {
				return nil, err
			}
			out = append(out, item)
		}
		return out, nil
	}
	return nil, errResult
}

func objectOf(m traits.Mapper, left *int) (any, error) {
	out := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, errResult
		}
		value, err := jsonOf(m.Get(key), left)
		if err != nil {
			return nil, err
		}
		out[string(name)] = value
	}
	return out, nil
}
