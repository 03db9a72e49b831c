// Package reads finds the fields of an object that an expression reads. It is pure.
package reads

import (
	"strconv"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// Paths returns the paths from self that an expression reads, each as far as its names are constant. The variable of a
// macro stands for the whole list or map.
func Paths(e celast.NavigableExpr) (paths [][]string) {
	path, _, ok := selfPath(e)
	if !ok {
		for _, child := range e.Children() {
			paths = append(paths, Paths(child)...)
		}
		return paths
	}
	paths = append(paths, path)
	for at := e; at.Kind() != celast.IdentKind; at = at.Children()[0] {
		for _, index := range at.Children()[1:] {
			paths = append(paths, Paths(index)...)
		}
	}
	return paths
}

// selfPath returns the path of names from self to e. It ends at a computed name, and open is true then. ok is false if
// e does not begin at self.
func selfPath(e celast.Expr) (path []string, open, ok bool) {
	switch e.Kind() {
	case celast.IdentKind:
		return nil, false, e.AsIdent() == "self"
	case celast.SelectKind:
		path, open, ok = selfPath(e.AsSelect().Operand())
		return then(path, open, e.AsSelect().FieldName()), open, ok
	case celast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
		default:
			return nil, false, false
		}
		if path, open, ok = selfPath(call.Args()[0]); !ok || call.Args()[1].Kind() != celast.LiteralKind {
			return path, true, ok
		}
		switch name := call.Args()[1].AsLiteral().(type) {
		case types.String:
			return then(path, open, string(name)), open, true
		case types.Int:
			return then(path, open, strconv.FormatInt(int64(name), 10)), open, true
		}
		return path, true, true
	}
	return nil, false, false
}

// then appends a name, as it occurs in objects, unless the path is open.
func then(path []string, open bool, name string) []string {
	if open {
		return path
	}
	if plain, ok := apiservercel.Unescape(name); ok {
		name = plain
	}
	return append(path, name)
}
