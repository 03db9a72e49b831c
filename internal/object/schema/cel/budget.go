package cel

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel/maxcost"
)

// Counting an expression's cost takes longer than evaluating it. So an object is first evaluated on the assumption that
// the budget suffices: expressions with a low maximum cost (maxcost.Of) run uncounted and are charged that maximum.
// Only if the charges of an object reach a good part of its budget, everything is evaluated again and counted.
const (
	uncountedCallLimit = celconfig.PerCallLimit / 10
	chargedBudgetFloor = celconfig.RuntimeCELCostBudget * 3 / 4
)

// extents lists the extents for which estimates are made, smallest first. A larger object is always counted.
var extents = [...]maxcost.Extent{
	{Elements: 16, Text: 256}, {Elements: 64, Text: 512}, {Elements: 1024, Text: 8192},
}

// within returns the index of the smallest extent that holds for all values, -1 if none does.
func within(values ...any) int {
	var x maxcost.Extent
	for _, v := range values {
		x.Grow(v)
	}
	return slices.IndexFunc(extents[:], x.Within)
}

// evaluation is the evaluation of one object.
type evaluation struct {
	budget    int64 // the rest; without exact, a lower bound
	exact     bool  // costs are counted, not estimated
	extent    int   // of the object, an index of extents; -1: beyond
	uncertain bool  // the budget may not suffice: exact is needed
	warn      func(*field.Error)
	done      <-chan struct{} // of the context; nil if it never ends

	errs     field.ErrorList
	warnings field.ErrorList
}

// over reports whether the time for the evaluation is.
func (e *evaluation) over() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// stopError ends the evaluation of an object.
type stopError struct {
	reason stopReason
	text   string
}

type stopReason uint8

const (
	stopUncertain stopReason = iota // evaluate again, exactly
	stopBudget                      // the object's budget is used up
	stopCall                        // one expression cost too much
)

func (e *stopError) Error() string { return e.text }

const outOfBudget = "validation failed due to running out of cost budget, no further validation rules will be run"

// affordable reports whether any budget is left, and otherwise adds the error.
func (e *evaluation) affordable(at *location, n *schema.Node) bool {
	if e.budget > 0 {
		return true
	}
	if !e.exact {
		e.uncertain = true
		return false
	}
	e.invalid(at, n, outOfBudget)
	e.budget = -1
	return false
}

// stop reports why the evaluation of a rule ends all evaluation.
func (e *evaluation) stop(at *location, n *schema.Node, r *apiextensionsv1.ValidationRule, stop *stopError) bool {
	switch stop.reason {
	case stopUncertain:
		e.uncertain = true
		return false
	case stopBudget:
		e.invalid(at, n, outOfBudget)
	case stopCall:
		e.invalid(at, n,
			fmt.Sprintf("'%v': no further validation rules will be run due to call cost exceeds limit for rule: %v",
				stop.text, ruleText(r)))
	}
	e.budget = -1
	return false
}

// evaluate runs x and charges for it. After a *stopError nothing more may run.
func (e *evaluation) evaluate(x *evaluable, vars *activation) (ref.Val, error) {
	if !e.exact && e.extent >= 0 && x.maxCosts[e.extent] <= uncountedCallLimit {
		out, err := run(x.program, vars)
		if e.budget -= int64(x.maxCosts[e.extent]); e.budget < chargedBudgetFloor {
			return nil, &stopError{reason: stopUncertain}
		}
		return out, err
	}
	program, err := x.tracked()
	if err != nil {
		return nil, err
	}
	var tracker *interpreter.CostTracker
	out, err := observe(program, vars, &tracker)
	cost := tracker.ActualCost()
	if cost > math.MaxInt64 || int64(cost) > e.budget {
		if !e.exact {
			return nil, &stopError{reason: stopUncertain}
		}
		return nil, &stopError{reason: stopBudget}
	}
	e.budget -= int64(cost)
	if err != nil && strings.HasPrefix(err.Error(), "operation cancelled: actual cost limit exceeded") {
		return nil, &stopError{stopCall, err.Error()}
	}
	return out, err
}

// run evaluates a program that does not count.
func run(p interpreter.Interpretable, vars *activation) (out ref.Val, err error) {
	defer recoverTo(&err)
	frame, err := vars.frame()
	if err != nil {
		return nil, err
	}
	defer frame.Close()
	return result(p.Eval(frame))
}

// observe evaluates a program that counts its costs into tracker. tracker is set even if evaluation ends early.
func observe(p *interpreter.ObservableInterpretable, vars *activation, tracker **interpreter.CostTracker) (out ref.Val,
	err error) {
	defer recoverTo(&err)
	frame, err := vars.frame()
	if err != nil {
		return nil, err
	}
	defer frame.Close()
	return result(p.ObserveEval(frame, func(state any) {
		if t, ok := state.(*interpreter.CostTracker); ok {
			*tracker = t
		}
	}))
}

func result(out ref.Val) (ref.Val, error) {
	if err, ok := out.(*types.Err); ok {
		return out, err
	}
	return out, nil
}

// recoverTo turns a panic of a function library into an error, with cel-go's words.
func recoverTo(err *error) {
	switch r := recover().(type) {
	case nil:
	case interpreter.EvalCancelledError:
		*err = r
	default:
		*err = fmt.Errorf("internal error: %v", r)
	}
}
