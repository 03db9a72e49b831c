package expr

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/lazy"
)

// Budgets in CEL cost units: of all validations of a policy and binding, or one mutation, and of a list of match
// conditions.
const (
	Budget               = celconfig.RuntimeCELCostBudget
	MatchConditionBudget = celconfig.RuntimeCELCostBudgetMatchConditions
)

// MaxMessage is how long the result of a messageExpression may be, in bytes.
const MaxMessage = celconfig.MaxEvaluatedMessageExpressionSizeBytes

// Input represents one write for expressions. Objects are decoded JSON; nil means null.
type Input struct {
	Object, OldObject, Params, Namespace map[string]any
	// Request returns the variable request on first use.
	Request func() map[string]any
	// Authorizer is nil if expressions have none.
	Authorizer *Authorizer
	// Exact counts the cost of every expression. Otherwise cheap expressions are charged their maximum; Estimated is
	// true if that happened.
	Exact, Estimated bool

	request map[string]any
}

// Result is the result of one expression: a value, or its own error.
type Result struct {
	Value ref.Val
	Err   *apiservercel.Error
	Took  time.Duration
}

// Run evaluates the expressions in order; nil expressions have empty results. An error means that all results are void:
// the budget is used up. left is the remaining budget, or a lower bound if in.Estimated.
func Run(ctx context.Context, exprs []*Expression, in *Input, budget int64) (results []Result, left int64, err error) {
	results, left, err = run(ctx, exprs, in, budget)
	if err != nil && in.Estimated {
		in.Exact, in.Estimated = true, false
		return run(ctx, exprs, in, budget)
	}
	return results, left, err
}

func run(ctx context.Context, exprs []*Expression, in *Input, budget int64) (results []Result, left int64, err error) {
	results = make([]Result, len(exprs))
	a := &activation{in: in, ctx: ctx}
	for i, e := range exprs {
		if e == nil {
			continue
		}
		if results[i], budget, err = a.evaluate(e, budget); err != nil {
			return nil, -1, err
		}
	}
	return results, budget, nil
}

// activation resolves the names in expressions. Variables are evaluated once, on first use, and their cost is charged
// to the expression that used them first.
type activation struct {
	in        *Input
	ctx       context.Context //nolint:containedctx // lives as long as the call that received it
	variables *lazy.MapValue
	cost      int64 // of variables, not charged yet
}

var _ interpreter.Activation = (*activation)(nil)

// Parent implements interpreter.Activation.
func (*activation) Parent() interpreter.Activation { return nil }

// ResolveName implements interpreter.Activation.
func (a *activation) ResolveName(name string) (any, bool) {
	switch name {
	case objectName:
		return value(a.in.Object), true
	case oldObjectName:
		return value(a.in.OldObject), true
	case paramsName:
		return value(a.in.Params), true
	case namespaceName:
		return value(a.in.Namespace), true
	case requestName:
		if a.in.request == nil {
			a.in.request = a.in.Request()
		}
		return a.in.request, true
	case authorizerName:
		if a.in.Authorizer == nil {
			return nil, false
		}
		return a.in.Authorizer.value(), true
	case requestResourceName:
		if a.in.Authorizer == nil {
			return nil, false
		}
		return a.in.Authorizer.resource(), true
	case variablesName:
		return a.variables, a.variables != nil
	}
	return nil, false
}

// value keeps a nil map from becoming an empty one.
func value(obj map[string]any) any {
	if obj == nil {
		return nil
	}
	return obj
}

func (a *activation) evaluate(e *Expression, budget int64) (Result, int64, error) {
	if e.Err != nil {
		return Result{
			Err: &apiservercel.Error{
				Type: apiservercel.ErrorTypeInvalid, Detail: fmt.Sprintf("compilation error: %v", e.Err), Cause: e.Err,
			},
		}, budget, nil
	}
	if a.variables == nil && e.variables != nil {
		a.compose(e.variables)
	}
	began := time.Now()
	v, cost, evalErr := a.eval(e)
	took := time.Since(began)
	if a.cost > budget {
		return Result{}, -1, outOfBudget()
	}
	budget, a.cost = budget-a.cost, 0
	if cost == nil {
		return Result{}, -1,
			&apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Cause: apiservercel.ErrOutOfBudget,
				Detail: fmt.Sprintf(
					"runtime cost could not be calculated for expression: %v, no further expression will be run",
					e.Source)}
	}
	if *cost > math.MaxInt64 || int64(*cost) > budget {
		return Result{}, -1, outOfBudget()
	}
	budget -= int64(*cost)
	if evalErr != nil {
		return Result{Took: took, Err: &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid,
			Detail: fmt.Sprintf("expression '%v' resulted in error: %v", e.Source, evalErr)}}, budget, nil
	}
	return Result{Value: v, Took: took}, budget, nil
}

// eval evaluates an expression. cost is nil if it could not be calculated.
func (a *activation) eval(e *Expression) (v ref.Val, cost *uint64, err error) {
	if e.simple != nil && !a.in.Exact {
		a.in.Estimated = true
		v = e.simple.Eval(a)
		if wrong, ok := v.(*types.Err); ok {
			return nil, &e.most, wrong
		}
		return v, &e.most, nil
	}
	v, details, err := e.program.ContextEval(a.ctx, a)
	if details != nil {
		cost = details.ActualCost()
	}
	return v, cost, err
}

func outOfBudget() *apiservercel.Error {
	return &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Cause: apiservercel.ErrOutOfBudget,
		Detail: "validation failed due to running out of cost budget, no further validation rules will be run"}
}

func (a *activation) compose(v *variables) {
	a.variables = lazy.NewMapValue(v.typ)
	for i, name := range v.names {
		a.variables.Append(name, func(*lazy.MapValue) ref.Val { return a.variable(name, v.exprs[i]) })
	}
}

func (a *activation) variable(name string, e *Expression) ref.Val {
	if e.Err != nil {
		return types.NewErr("composited variable %q fails to compile: %v", name, e.Err)
	}
	v, cost, err := a.eval(e)
	if cost == nil {
		return types.NewErr("unable to calculate cost of variable %q", name)
	}
	a.cost += int64(min(*cost, math.MaxInt64))
	if err != nil {
		return types.NewErr("composited variable %q fails to evaluate: %v", name, err)
	}
	return v
}
