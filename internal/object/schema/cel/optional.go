package cel

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// optionalChoice evaluates a.or(b) and a.orValue(b): b only if a is empty. cel-go plans these calls so, too, but in a
// place that only its own programs reach.
type optionalChoice struct {
	id     int64
	first  interpreter.Interpretable
	second interpreter.Interpretable
	unwrap bool // orValue
}

// planOptionalChoice is a decorator of the planner.
func planOptionalChoice(i interpreter.Interpretable) (interpreter.Interpretable, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || len(call.Args()) != 2 {
		return i, nil
	}
	c := &optionalChoice{id: call.ID(), first: call.Args()[0], second: call.Args()[1]}
	switch overload := call.OverloadID(); call.Function() {
	case "or":
		if overload == "" || overload == "optional_or_optional" {
			return c, nil
		}
	case "orValue":
		if overload == "" || overload == "optional_orValue_value" {
			c.unwrap = true
			return c, nil
		}
	}
	return i, nil
}

func (c *optionalChoice) ID() int64 { return c.id }

func (c *optionalChoice) Eval(vars interpreter.Activation) ref.Val {
	v := c.first.Eval(vars)
	optional, ok := v.(*types.Optional)
	switch {
	case !ok:
		return v
	case !optional.HasValue():
		return c.second.Eval(vars)
	case c.unwrap:
		return optional.GetValue()
	}
	return v
}
