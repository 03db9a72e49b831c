package reshape

import (
	"errors"
	"fmt"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel"
)

// expression converts by two CEL expressions. They see one field as value, several as values, and return a value, or a
// list of values for several fields. Without any value, the expression is not evaluated, and null for a field of
// several stands for none.
func expression(r *Rule, a, b []*schema.Node) (*operation, error) {
	there, err := function(r, "forward")
	if err != nil {
		return nil, err
	}
	back, err := function(r, "backward")
	if err != nil {
		return nil, err
	}
	return &operation{adds: true, forward: call(there, len(b)), backward: call(back, len(a))}, nil
}

func function(r *Rule, name string) (*cel.Function, error) {
	source, err := r.required(name)
	if err != nil {
		return nil, fmt.Errorf("%w: a rule needs an expression for each direction", err)
	}
	f, err := cel.NewFunction(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

var errResults = errors.New("gives an expression that returned no list with a value for each field")

func call(f *cel.Function, results int) func(in, out []any) error {
	return func(in, out []any) error {
		clearValues(out)
		values, some := make([]any, len(in)), false
		for i, v := range in {
			if !isMissing(v) {
				values[i], some = v, true
			}
		}
		if !some {
			return nil
		}
		v, err := f.Call(values)
		if err != nil {
			return fmt.Errorf("fails: %w", err)
		}
		if results == 1 {
			out[0] = v
			return nil
		}
		list, ok := v.([]any)
		if !ok || len(list) != results {
			return errResults
		}
		for i, item := range list {
			if item != nil {
				out[i] = item
			}
		}
		return nil
	}
}
