// Package jsonpath translates CEL expressions about an object to the JSON paths of printer columns, and the names of
// fields to names in expressions. It is pure.
package jsonpath

import (
	"strconv"
	"strings"
	"sync"

	"github.com/google/cel-go/common"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

var newParser = sync.OnceValues(func() (*parser.Parser, error) {
	return parser.NewParser(parser.Macros(parser.AllMacros...), parser.EnableOptionalSyntax(true))
})

// Of returns the path with the values of an expression: of names and indexes from self, with an optional choice of the
// first item of a list by the text of a field.
//
//	self.status.conditions.filter(c, c.type == 'Ready')[0].status
//	.status.conditions[?(@.type=="Ready")].status
func Of(source string) (path string, ok bool) {
	p, err := newParser()
	if err != nil {
		return "", false
	}
	parsed, errs := p.Parse(common.NewTextSource(source))
	if len(errs.GetErrors()) > 0 {
		return "", false
	}
	path, ok = from("self", parsed.Expr())
	return path, ok && path != ""
}

// Escape returns the name by which expressions refer to a field, and false if they cannot.
func Escape(name string) (escaped string, ok bool) { return apiservercel.Escape(name) }

// from returns the path of e from a variable, "" for the variable itself.
func from(variable string, e celast.Expr) (path string, ok bool) {
	switch e.Kind() {
	case celast.IdentKind:
		return "", e.AsIdent() == variable
	case celast.SelectKind:
		if e.AsSelect().IsTestOnly() {
			return "", false
		}
		return then(variable, e.AsSelect().Operand(), e.AsSelect().FieldName())
	case celast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
		default:
			return "", false
		}
		if call.Args()[1].Kind() != celast.LiteralKind {
			return "", false
		}
		switch index := call.Args()[1].AsLiteral().(type) {
		case types.String:
			return then(variable, call.Args()[0], string(index))
		case types.Int:
			return item(variable, call.Args()[0], int64(index))
		}
	}
	return "", false
}

// then returns the path of a field of e.
func then(variable string, e celast.Expr, name string) (string, bool) {
	if plain, ok := apiservercel.Unescape(name); ok {
		name = plain
	}
	path, ok := from(variable, e)
	if !ok || name == "" || strings.ContainsFunc(name, unusual) {
		return "", false
	}
	return path + "." + strings.ReplaceAll(name, ".", `\.`), true
}

// unusual reports whether a path would need quotes for a character of a name.
func unusual(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./", r)
}

// item returns the path of an item of e, or of the first item that a filter chooses.
func item(variable string, e celast.Expr, index int64) (string, bool) {
	if e.Kind() == celast.ComprehensionKind && index == 0 {
		return chosen(variable, e.AsComprehension())
	}
	path, ok := from(variable, e)
	if !ok || index < 0 {
		return "", false
	}
	return path + "[" + strconv.FormatInt(index, 10) + "]", true
}

// chosen returns the path of the items that a filter chooses. The path of a column shows the first one.
func chosen(variable string, c celast.ComprehensionExpr) (string, bool) {
	list, ok := from(variable, c.IterRange())
	if !ok || c.AccuInit().Kind() != celast.ListKind || c.HasIterVar2() || c.LoopStep().Kind() != celast.CallKind ||
		c.LoopStep().AsCall().FunctionName() != operators.Conditional || c.Result().Kind() != celast.IdentKind {
		return "", false
	}
	args := c.LoopStep().AsCall().Args()
	if !keeps(args[1], c.IterVar()) || args[0].Kind() != celast.CallKind {
		return "", false
	}
	test := args[0].AsCall()
	if test.FunctionName() != operators.Equals || test.Args()[1].Kind() != celast.LiteralKind {
		return "", false
	}
	value, isText := test.Args()[1].AsLiteral().(types.String)
	path, ok := from(c.IterVar(), test.Args()[0])
	if !ok || path == "" || !isText || strings.ContainsFunc(string(value), unusual) {
		return "", false
	}
	return list + `[?(@` + path + `=="` + string(value) + `")]`, true
}

// keeps reports whether a step of a loop appends the variable itself, as a filter does and a map does not.
func keeps(e celast.Expr, variable string) bool {
	if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != operators.Add {
		return false
	}
	added := e.AsCall().Args()[1]
	if added.Kind() != celast.ListKind || len(added.AsList().Elements()) != 1 {
		return false
	}
	one := added.AsList().Elements()[0]
	return one.Kind() == celast.IdentKind && one.AsIdent() == variable
}
