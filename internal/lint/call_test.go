package lint

import (
	"go/ast"
	"go/parser"
	"slices"
	"testing"
)

// callPackage is the only package that may change a Call: its methods return changed copies.
const callPackage = "internal/verb/call"

// callMakers are the functions and methods that return a *verb.Call.
var callMakers = []string{
	"Call", "Resolve", "Virtual", "Conceal", "Named", "Under", "In", "Of", "MetadataOnly", "SkippingUnreadable",
	"Narrow", "At", "Approved", "InStored", "InStoredVersion",
}

// TestCallsDoNotChange checks that only package call assigns to a field of a Call, and that only it copies one. It
// recognizes calls by syntax: parameters and fields of the type, and results of callMakers.
func TestCallsDoNotChange(t *testing.T) {
	fields, functions := map[string]bool{}, 0
	for _, f := range sources(t) {
		if !f.test {
			callFields(f.tree, fields)
		}
	}
	for _, f := range sources(t) {
		if f.test || f.pkg == callPackage || !within(f.pkg, "internal/verb") && !usesVerbs(f) {
			continue
		}
		for _, decl := range f.tree.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			calls := callsOf(fn)
			if len(calls) > 0 {
				functions++
			}
			for _, at := range changedCalls(fn, calls, fields) {
				t.Errorf("%s: a Call does not change: use a method that returns a copy (package %s)",
					positions.Position(at.Pos()), callPackage)
			}
		}
	}
	if functions < 200 {
		t.Errorf("only %d functions with calls found", functions)
	}
}

// usesVerbs reports whether a file imports a package of the verbs.
func usesVerbs(f file) bool {
	return slices.ContainsFunc(f.imports, func(i string) bool { return within(i, module+"/internal/verb") })
}

// isCall reports whether a type is *Call, *verb.Call or *call.Call.
func isCall(e ast.Expr) bool {
	star, ok := e.(*ast.StarExpr)
	if !ok {
		return false
	}
	switch x := star.X.(type) {
	case *ast.Ident:
		return x.Name == "Call"
	case *ast.SelectorExpr:
		pkg, ok := x.X.(*ast.Ident)
		return ok && x.Sel.Name == "Call" && (pkg.Name == "verb" || pkg.Name == "call")
	}
	return false
}

// callFields adds the names of struct fields with the type of a call.
func callFields(tree *ast.File, names map[string]bool) {
	ast.Inspect(tree, func(n ast.Node) bool {
		if s, ok := n.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				for _, name := range f.Names {
					names[name.Name] = names[name.Name] || isCall(f.Type)
				}
			}
		}
		return true
	})
}

// callsOf returns the names of the variables of a function that hold a Call.
func callsOf(fn *ast.FuncDecl) map[string]bool {
	calls := map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, name := range n.Names {
				if isCall(n.Type) {
					calls[name.Name] = true
				}
			}
		case *ast.AssignStmt:
			if made, ok := n.Rhs[0].(*ast.CallExpr); ok && len(n.Rhs) == 1 {
				sel, ok := made.Fun.(*ast.SelectorExpr)
				if name, isName := n.Lhs[0].(*ast.Ident); ok && isName && slices.Contains(callMakers, sel.Sel.Name) {
					calls[name.Name] = true
				}
			}
		}
		return true
	})
	return calls
}

// changedCalls returns the assignments to fields of calls, and the copies of calls.
func changedCalls(fn *ast.FuncDecl, calls, fields map[string]bool) (found []ast.Node) {
	holds := func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.Ident:
			return calls[e.Name]
		case *ast.SelectorExpr:
			return fields[e.Sel.Name]
		}
		return false
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for _, e := range assign.Lhs {
			if sel, ok := e.(*ast.SelectorExpr); ok && holds(sel.X) {
				found = append(found, e)
			}
		}
		for _, e := range assign.Rhs {
			if star, ok := e.(*ast.StarExpr); ok && holds(star.X) {
				found = append(found, e)
			}
		}
		return true
	})
	return found
}

func TestChangedCalls(t *testing.T) {
	t.Parallel()
	const text = `package p
type holder struct{ of *verb.Call; other int }
func f(c *verb.Call, h holder, r reader) {
	c.Name = "x"
	h.of.Name = "x"
	h.other = 1
	one := *c
	two, err := r.Call(gr)
	two.Subresource = "status"
	three := two.Under("status")
	c, two = three, c
	other.Name = "x"
}`
	tree, err := parser.ParseFile(positions, "p.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	callFields(tree, fields)
	fn := tree.Decls[len(tree.Decls)-1].(*ast.FuncDecl)
	if found := changedCalls(fn, callsOf(fn), fields); len(found) != 4 {
		t.Errorf("found %d changes, want 4", len(found))
	}
}
