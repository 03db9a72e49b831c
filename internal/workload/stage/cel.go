package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
)

// program is a CEL expression about the variable self, an object. Times in self are texts, as in JSON.
type program struct {
	text string
	run  cel.Program
}

// costLimit bounds the cost of an expression, as Kubernetes bounds the expressions of policies.
const costLimit = 1_000_000

// nowName is the variable that Now() compiles to. No expression can name it.
const nowName = "@now"

// environment declares self and functions of kwok: Now(), Rand(), UnixSecond(timestamp) and SinceSecond(object).
var environment = sync.OnceValues(func() (*cel.Env, error) {
	now := func(f cel.MacroExprFactory) ast.Expr { return f.NewIdent(nowName) }
	return cel.NewEnv(
		cel.Variable("self", cel.DynType), cel.Variable(nowName, cel.TimestampType),
		ext.Strings(), cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true),
		cel.Macros(textMacros()...),
		cel.Macros(
			cel.GlobalMacro("Now", 0, func(f cel.MacroExprFactory, _ ast.Expr, _ []ast.Expr) (ast.Expr, *cel.Error) {
				return now(f), nil
			}),
			cel.GlobalMacro("SinceSecond", 1,
				func(f cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
					return f.NewCall("@since", args[0], now(f)), nil
				}),
		),
		cel.Function("@since", cel.Overload("since", []*cel.Type{cel.DynType, cel.TimestampType}, cel.DoubleType,
			cel.BinaryBinding(since))),
		textFunction("@replace", replaceText), textFunction("@join", joinTexts),
		cel.Function("Rand", cel.Overload("rand", nil, cel.DoubleType,
			cel.FunctionBinding(func(...ref.Val) ref.Val { return types.Double(rand.Float64()) }))),
		cel.Function("UnixSecond", cel.Overload("unix_second", []*cel.Type{cel.TimestampType}, cel.DoubleType,
			cel.UnaryBinding(func(v ref.Val) ref.Val {
				return types.Double(float64(v.(types.Timestamp).UnixNano()) / float64(time.Second))
			}))),
	)
})

// since returns the age of an object in seconds.
func since(self, now ref.Val) ref.Val {
	at := self
	for _, name := range []string{"metadata", "creationTimestamp"} {
		m, ok := at.(traits.Mapper)
		if !ok {
			return types.NewErr("SinceSecond: no object")
		}
		if at, ok = m.Find(types.String(name)); !ok {
			return types.NewErr("SinceSecond: no %s", name)
		}
	}
	text, _ := at.Value().(string)
	created, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Double(now.(types.Timestamp).Sub(created).Seconds())
}

func compileCEL(text string) (*program, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	if len(text) > textMost {
		return nil, fmt.Errorf("cel: has %d bytes: use %d at most", len(text), textMost)
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, fmt.Errorf("cel %q: %w", text, issues.Err())
	}
	for name := range calls(checked) {
		if slices.Contains(unpriced, name) {
			return nil, fmt.Errorf("cel %q: a Stage cannot use the function %s", text, name)
		}
	}
	run, err := env.Program(checked, cel.CostLimit(costLimit), cel.CostTracking(prices{}),
		cel.InterruptCheckFrequency(100))
	if err != nil {
		return nil, fmt.Errorf("cel %q: %w", text, err)
	}
	return &program{text, run}, nil
}

// unpriced are string functions with a cost that the limit does not cover.
var unpriced = []string{"format", "reverse", "strings.quote"}

// calls returns the names of the functions that an expression calls.
func calls(of *cel.Ast) map[string]bool {
	names := map[string]bool{}
	ast.PreOrderVisit(of.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.CallKind {
			names[e.AsCall().FunctionName()] = true
		}
	}))
	return names
}

func (p *program) eval(ctx context.Context, o *Object) (ref.Val, error) {
	if o.forCEL == nil {
		var self map[string]any
		if err := json.Unmarshal(o.JSON, &self); err != nil {
			return nil, err
		}
		o.forCEL = integers(self)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v, _, err := p.run.ContextEval(ctx, map[string]any{"self": o.forCEL, nowName: o.Now})
	if err != nil {
		return nil, fmt.Errorf("cel %q: %w", p.text, err)
	}
	return v, nil
}

func (p *program) unusable(v ref.Val, wanted string) error {
	return fmt.Errorf("cel %q: is of type %s, not %s", p.text, v.Type().TypeName(), wanted)
}

func (p *program) asBool(ctx context.Context, o *Object) (bool, error) {
	v, err := p.eval(ctx, o)
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, p.unusable(v, "bool")
	}
	return bool(b), nil
}

func (p *program) asInt(ctx context.Context, o *Object) (int64, error) {
	v, err := p.eval(ctx, o)
	if err != nil {
		return 0, err
	}
	switch v := v.(type) {
	case types.Int:
		return int64(v), nil
	case types.Uint:
		return whole(float64(v)), nil
	case types.Double:
		return whole(float64(v)), nil
	case types.Duration:
		return int64(v.Duration), nil
	case types.Bool:
		if v {
			return 1, nil
		}
		return 0, nil
	}
	return 0, p.unusable(v, "int")
}

func (p *program) asDuration(ctx context.Context, o *Object) (time.Duration, error) {
	v, err := p.eval(ctx, o)
	if err != nil {
		return 0, err
	}
	switch v := v.(type) {
	case types.String:
		return time.ParseDuration(string(v))
	case types.Duration:
		return v.Duration, nil
	case types.Int:
		return time.Duration(v), nil
	case types.Uint:
		return time.Duration(whole(float64(v))), nil
	case types.Double:
		return time.Duration(whole(float64(v))), nil
	}
	return 0, p.unusable(v, "duration")
}

// integers has whole numbers be integers, as they are in Kubernetes' JSON.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = integers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = integers(e)
		}
	case float64:
		if i := int64(v); float64(i) == v {
			return i
		}
	}
	return v
}
