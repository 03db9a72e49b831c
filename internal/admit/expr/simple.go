package expr

import (
	"math"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
)

// Counting an expression's cost takes longer than evaluating it. A simple expression costs at most simpleCost, whatever
// the objects: like most policies, it compares fields with literals. It runs uncounted and is charged its maximum. Only
// if that would exhaust the budget, everything is evaluated again and counted.
const simpleCost = 1000

// simpleFunctions lists functions with a cost independent of the size of their arguments, except for comparisons and
// in.
var simpleFunctions = map[string]bool{
	operators.LogicalAnd: true, operators.LogicalOr: true, operators.LogicalNot: true, operators.Conditional: true,
	operators.Index: true,
	overloads.Size:  true,
}

var comparisons = map[string]bool{
	operators.Equals: true, operators.NotEquals: true, operators.Less: true, operators.LessEquals: true,
	operators.Greater: true, operators.GreaterEquals: true,
}

// mostOf returns the maximum cost of an expression, math.MaxUint64 if it depends on the objects. The costs equal
// cel-go's interpreter/runtimecost.go, rounded up.
func mostOf(e celast.Expr) uint64 {
	sum := uint64(0)
	add := func(costs ...uint64) {
		for _, c := range costs {
			sum += min(c, math.MaxUint64-sum)
		}
	}
	all := func(list []celast.Expr) {
		for _, e := range list {
			add(mostOf(e))
		}
	}
	switch e.Kind() {
	case celast.LiteralKind:
		add(1)
	case celast.IdentKind:
		add(1)
		if name := e.AsIdent(); name == authorizerName || name == requestResourceName {
			add(math.MaxUint64) // an unknown function
		}
	case celast.SelectKind:
		add(1, mostOf(e.AsSelect().Operand()))
	case celast.ListKind:
		add(40)
		all(e.AsList().Elements())
	case celast.CallKind:
		c := e.AsCall()
		args := c.Args()
		if c.IsMemberFunction() {
			args = append([]celast.Expr{c.Target()}, args...)
		}
		add(1)
		all(args)
		switch name := c.FunctionName(); {
		case simpleFunctions[name]:
		case comparisons[name]: // the size of the smaller one
			add(min(sizeOf(args[0]), sizeOf(args[1])))
		case name == operators.In:
			add(sizeOf(args[1]))
			if args[1].Kind() == celast.ListKind {
				all(args[1].AsList().Elements())
			}
		default:
			add(math.MaxUint64)
		}
	default:
		add(math.MaxUint64)
	}
	return sum
}

// sizeOf returns the size of an expression's result, math.MaxUint64 if it depends on the objects.
func sizeOf(e celast.Expr) uint64 {
	switch e.Kind() {
	case celast.LiteralKind:
		switch v := e.AsLiteral().(type) {
		case types.String:
			return uint64(len(v)) + 1
		case types.Bytes:
			return uint64(len(v)) + 1
		}
		return 1
	case celast.ListKind:
		for _, element := range e.AsList().Elements() {
			if element.Kind() != celast.LiteralKind {
				return math.MaxUint64
			}
		}
		return uint64(e.AsList().Size()) + 1
	}
	return math.MaxUint64
}

// plan makes a simple expression executable, without counting.
func plan(env *cel.Env, ast *cel.Ast) (interpreter.Interpretable, error) {
	dispatcher := interpreter.NewDispatcher()
	functions := env.Functions()
	add := func(names map[string]bool) error {
		for name := range names {
			bindings, err := functions[name].Bindings()
			if err == nil {
				err = dispatcher.Add(bindings...)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, names := range []map[string]bool{simpleFunctions, comparisons, {operators.In: true}} {
		if err := add(names); err != nil {
			return nil, err
		}
	}
	attributes := interpreter.NewAttributeFactory(env.Container, env.CELTypeAdapter(), env.CELTypeProvider())
	return interpreter.NewInterpreter(dispatcher, env.Container, env.CELTypeProvider(), env.CELTypeAdapter(),
		attributes).
		NewInterpretable(ast.NativeRep(), interpreter.Optimize())
}
