// Package maxcost bounds the cost of expressions before they run. Expressions with a low bound run uncounted, so a
// bound must never be too low. The package consists of pure functions.
package maxcost

import (
	"math"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
)

// Extent bounds the parts of an object: the elements of each list and map, and the bytes of each string and key.
type Extent struct{ Elements, Text uint64 }

// Grow extends x to a decoded JSON value.
func (x *Extent) Grow(v any) {
	switch v := v.(type) {
	case string:
		x.Text = max(x.Text, uint64(len(v)))
	case []any:
		x.Elements = max(x.Elements, uint64(len(v)))
		for _, e := range v {
			x.Grow(e)
		}
	case map[string]any:
		x.Elements = max(x.Elements, uint64(len(v)))
		for k, e := range v {
			x.Text = max(x.Text, uint64(len(k)))
			x.Grow(e)
		}
	}
}

// Within reports whether bound holds for all values of x.
func (x *Extent) Within(bound Extent) bool {
	return x.Elements <= bound.Elements && x.Text <= bound.Text
}

// Of returns an upper bound for the cost of a checked expression on values of an extent, math.MaxUint64 if unknown.
//
// Kubernetes' estimates are unsuitable: they assume the largest possible request, and are too low for some expressions
// (”.split(',') counts as an empty list, a map's keys as empty strings). Of accepts only operations with results not
// larger than their arguments, so each value is at most as large as a part of the object or a literal.
func Of(a *ast.AST, x Extent) uint64 {
	b := bounds{ast: a, Extent: x}
	b.Text = max(b.Text, 64) // numbers and times as text
	b.literals(a.Expr())
	return b.cost(a.Expr())
}

const unknownCost = math.MaxUint64

// bounds computes costs from bounds of sizes: the object's, raised by literals.
type bounds struct {
	ast *ast.AST
	Extent
	loops []string // the results of the enclosing loops
}

// literals raises the bounds to the sizes of literals in the expression.
func (b *bounds) literals(e ast.Expr) {
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.LiteralKind:
			switch v := e.AsLiteral().(type) {
			case types.String:
				b.Text = max(b.Text, uint64(len(v)))
			case types.Bytes:
				b.Text = max(b.Text, uint64(len(v)))
			}
		case ast.ListKind:
			b.Elements = max(b.Elements, uint64(e.AsList().Size()))
		case ast.MapKind:
			b.Elements = max(b.Elements, uint64(e.AsMap().Size()))
		}
	}))
}

// Times multiplies two costs and stops at the largest number.
func Times(cost, n uint64) uint64 {
	if cost == 0 {
		return 0
	}
	if math.MaxUint64/cost < n {
		return math.MaxUint64
	}
	return cost * n
}

func plus(costs ...uint64) (sum uint64) {
	for _, c := range costs {
		if sum > math.MaxUint64-c {
			return unknownCost
		}
		sum += c
	}
	return sum
}

func (b *bounds) cost(e ast.Expr) uint64 {
	switch e.Kind() {
	case ast.LiteralKind, ast.IdentKind:
		return 1
	case ast.SelectKind:
		return plus(1, b.cost(e.AsSelect().Operand()))
	case ast.ListKind:
		return plus(40, b.all(e.AsList().Elements()))
	case ast.MapKind:
		sum := uint64(40)
		for _, entry := range e.AsMap().Entries() {
			sum = plus(sum, b.cost(entry.AsMapEntry().Key()), b.cost(entry.AsMapEntry().Value()))
		}
		return sum
	case ast.CallKind:
		return b.call(e)
	case ast.ComprehensionKind:
		return b.loop(e.AsComprehension())
	}
	return unknownCost
}

func (b *bounds) all(exprs []ast.Expr) (sum uint64) {
	for _, e := range exprs {
		sum = plus(sum, b.cost(e))
	}
	return sum
}

func (b *bounds) loop(c ast.ComprehensionExpr) uint64 {
	repeats := b.Elements
	if r := c.IterRange(); r.Kind() == ast.ListKind {
		repeats = uint64(r.AsList().Size()) // cel.bind loops over an empty list
	}
	around := plus(1, b.cost(c.IterRange()), b.cost(c.AccuInit()), b.cost(c.Result()))
	b.loops = append(b.loops, c.AccuVar())
	step := plus(1, b.cost(c.LoopCondition()), b.cost(c.LoopStep()))
	b.loops = b.loops[:len(b.loops)-1]
	return plus(around, Times(step, repeats))
}

func (b *bounds) call(e ast.Expr) uint64 {
	c := e.AsCall()
	args := c.Args()
	if c.IsMemberFunction() {
		args = append([]ast.Expr{c.Target()}, args...)
	}
	text := b.Text/10 + 1
	own := uint64(unknownCost)
	switch name := c.FunctionName(); name {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional, operators.Index,
		operators.OptIndex,
		operators.OptSelect, operators.NotStrictlyFalse, operators.Subtract, operators.Multiply, operators.Divide,
		operators.Modulo,
		operators.Negate, overloads.Size, "type", "dyn", "hasValue", "value", "orValue", "or", "optional.of",
		"optional.none":
		own = 1
	case operators.Add:
		if b.addsScalars(e.ID()) || b.addsToResult(args) {
			own = 1
		}
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater,
		operators.GreaterEquals:
		own = max(b.Text, b.Elements)/10 + 1
	case operators.In:
		own = b.Elements + 1
	case overloads.StartsWith, overloads.EndsWith, "int", "uint", "double", "string", "duration", "timestamp":
		own = text
	case overloads.Contains:
		own = Times(text, text)
	case overloads.Matches:
		own = Times(text, b.Text/4+1)
	default:
		if strings.HasPrefix(name, "get") && b.isTime(args) {
			own = 1
		}
	}
	if own == unknownCost {
		return unknownCost
	}
	return plus(own, b.all(args))
}

// addsScalars reports whether an addition is one of numbers or times.
func (b *bounds) addsScalars(id int64) bool {
	for _, o := range b.ast.GetOverloadIDs(id) {
		switch o {
		case overloads.AddInt64, overloads.AddUint64, overloads.AddDouble, overloads.AddDurationDuration,
			overloads.AddDurationTimestamp,
			overloads.AddTimestampDuration:
		default:
			return false
		}
	}
	return len(b.ast.GetOverloadIDs(id)) > 0
}

// addsToResult reports whether an addition is a step of map() or filter(), which adds one element to the loop's own
// result. Only macros can use that variable.
func (b *bounds) addsToResult(args []ast.Expr) bool {
	return len(args) == 2 && len(b.loops) > 0 && args[0].Kind() == ast.IdentKind &&
		args[0].AsIdent() == b.loops[len(b.loops)-1] &&
		args[1].Kind() == ast.ListKind && args[1].AsList().Size() == 1
}

// isTime reports whether a call is a method of a timestamp or duration.
func (b *bounds) isTime(args []ast.Expr) bool {
	if len(args) == 0 {
		return false
	}
	kind := b.ast.GetType(args[0].ID()).Kind()
	return kind == types.TimestampKind || kind == types.DurationKind
}
