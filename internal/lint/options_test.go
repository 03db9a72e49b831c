package lint

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// testOptions are the fields of options that only tests set, with the reason.
var testOptions = map[string]string{}

// optionFloors are the folders with options that programs outside of the module set.
var optionFloors = []string{".", "extension", "testserver", "internal/server/config", "internal/testing", "test"}

// TestOptionsAreSet checks that the program sets every exported field of the structs named Options or Config, or with
// such an ending, somewhere: a field that only tests set is a feature without a user. It recognizes the structs by
// syntax: a field is set by a literal of its type, or by an assignment in a package that imports the type's package.
func TestOptionsAreSet(t *testing.T) {
	fields, set := optionFields(t), map[string]bool{}
	for _, f := range sources(t) {
		if !f.test {
			markSet(f, fields, set)
		}
	}
	count := 0
	for owner, names := range fields {
		for _, name := range names {
			count++
			full := owner + "." + name
			switch reason := testOptions[full]; {
			case !set[full] && reason == "":
				t.Errorf("no code but tests sets %s: wire it, or remove it", full)
			case set[full] && reason != "":
				t.Errorf("the program sets %s: remove it from testOptions", full)
			}
		}
	}
	if count < 100 {
		t.Errorf("only %d fields of options found", count)
	}
}

// optionFields returns the names of the exported fields of options by type, as in "internal/verb.Config".
func optionFields(t *testing.T) map[string][]string {
	out := map[string][]string{}
	for _, f := range sources(t) {
		if f.test || slices.ContainsFunc(optionFloors, func(p string) bool { return f.pkg == p || within(f.pkg, p) }) {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok || !strings.HasSuffix(spec.Name.Name, "Options") && !strings.HasSuffix(spec.Name.Name, "Config") {
				return true
			}
			for _, field := range s.Fields.List {
				for _, name := range field.Names {
					if name.IsExported() && field.Tag == nil {
						out[f.pkg+"."+spec.Name.Name] = append(out[f.pkg+"."+spec.Name.Name], name.Name)
					}
				}
			}
			return true
		})
	}
	return out
}

// markSet adds the fields of options that the file sets.
func markSet(f file, fields map[string][]string, set map[string]bool) {
	imported := map[string]string{} // packages by their name in the file
	for _, spec := range f.tree.Imports {
		full, _ := strconv.Unquote(spec.Path.Value)
		if pkg, ok := local(full); ok {
			name := full[strings.LastIndex(full, "/")+1:]
			if spec.Name != nil {
				name = spec.Name.Name
			}
			imported[name] = pkg
		}
	}
	reached := append(importedPackages(f), f.pkg)
	assigned := func(e ast.Expr) {
		for sel, ok := e.(*ast.SelectorExpr); ok; sel, ok = sel.X.(*ast.SelectorExpr) { // o.Files.Key sets Files, too
			for owner := range fields {
				if slices.Contains(reached, owner[:strings.LastIndex(owner, ".")]) {
					set[owner+"."+sel.Sel.Name] = true
				}
			}
		}
	}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				assigned(e)
			}
		case *ast.UnaryExpr:
			if n.Op.String() == "&" {
				assigned(n.X)
			}
		case *ast.CompositeLit:
			markLiteral(n, ownerOf(n.Type, f.pkg, imported), fields, set)
		}
		return true
	})
}

// importedPackages returns the packages of the module that the file imports.
func importedPackages(f file) (out []string) {
	for _, i := range f.imports {
		if pkg, ok := local(i); ok {
			out = append(out, pkg)
		}
	}
	return out
}

// ownerOf returns the type of a literal, as in "internal/verb.Config".
func ownerOf(e ast.Expr, pkg string, imported map[string]string) string {
	switch e := e.(type) {
	case *ast.Ident:
		return pkg + "." + e.Name
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return imported[x.Name] + "." + e.Sel.Name
		}
	}
	return ""
}

// markLiteral adds the fields that a literal of options sets.
func markLiteral(lit *ast.CompositeLit, owner string, fields map[string][]string, set map[string]bool) {
	for i, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); !ok && i < len(fields[owner]) {
			set[owner+"."+fields[owner][i]] = true
		} else if ok {
			if key, ok := kv.Key.(*ast.Ident); ok {
				set[owner+"."+key.Name] = true
			}
		}
	}
}
