// Package publicapi parses the public packages of the module, for the tests that compare them with lists and pages.
//
// The root package consists of aliases for names of internal packages. Parse shows their declarations in place of the
// aliases, as an importer sees them.
package publicapi

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

const module = "github.com/bowsprit/bowsprit"

// Parse returns the package in a folder of the module. root is the folder of the module, and dir the path from there.
func Parse(files *token.FileSet, root, dir string) (*doc.Package, error) {
	trees, err := parse(files, filepath.Join(root, dir))
	if err != nil {
		return nil, err
	}
	behind := collect(trees)
	name := trees[0].Name.Name
	for imported, names := range behind {
		more, err := parse(files, filepath.Join(root, strings.TrimPrefix(imported, module)))
		if err != nil {
			return nil, err
		}
		for _, tree := range more {
			tree.Name.Name, tree.Doc = name, nil
			names.keep(tree)
		}
		trees = append(trees, more...)
	}
	return doc.NewFromFiles(files, trees, path.Join(module, filepath.ToSlash(dir)))
}

func parse(files *token.FileSet, dir string) ([]*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var trees []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		trees = append(trees, tree)
	}
	return trees, nil
}

// aliases are the names that a public package gives to the names of an internal one, by the internal names.
type aliases map[string]string

// collect removes the aliases from a package, and returns them by the imported package.
func collect(trees []*ast.File) map[string]aliases {
	found := map[string]aliases{}
	for _, tree := range trees {
		imports := map[string]string{}
		for _, spec := range tree.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err == nil && strings.HasPrefix(imported, module+"/internal/") {
				imports[path.Base(imported)] = imported
			}
		}
		filter(tree, func(name *ast.Ident, value ast.Expr) bool {
			of, ok := value.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			imported := imports[of.X.(*ast.Ident).Name]
			if imported == "" {
				return true
			}
			if found[imported] == nil {
				found[imported] = aliases{}
			}
			found[imported][of.Sel.Name] = name.Name
			return false
		})
	}
	return found
}

// filter keeps the types and constants of a file for which keep returns true. value is the right side of a declaration.
func filter(tree *ast.File, keep func(name *ast.Ident, value ast.Expr) bool) {
	var decls []ast.Decl
	for _, decl := range tree.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok || general.Tok == token.IMPORT {
			decls = append(decls, decl)
			continue
		}
		var specs []ast.Spec
		for _, spec := range general.Specs {
			kept := true
			switch s := spec.(type) {
			case *ast.TypeSpec:
				kept = keep(s.Name, s.Type)
			case *ast.ValueSpec:
				var value ast.Expr
				if len(s.Values) > 0 {
					value = s.Values[0]
				}
				kept = keep(s.Names[0], value)
			}
			if kept {
				specs = append(specs, spec)
			}
		}
		if general.Specs = specs; len(specs) > 0 {
			decls = append(decls, general)
		}
	}
	tree.Decls = decls
}

// keep removes everything without an alias from a file of an internal package, and renames the rest.
func (a aliases) keep(tree *ast.File) {
	filter(tree, func(name *ast.Ident, _ ast.Expr) bool { return a[name.Name] != "" })
	var decls []ast.Decl
	for _, decl := range tree.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && (f.Recv == nil || a[receiver(f)] == "") {
			continue
		}
		decls = append(decls, decl)
	}
	tree.Decls = decls
	for _, decl := range decls {
		if general, ok := decl.(*ast.GenDecl); ok && general.Doc != nil {
			a.begin(general.Doc)
		}
		a.rename(decl)
	}
}

// begin gives the first word of a comment its public name.
func (a aliases) begin(comment *ast.CommentGroup) {
	first := comment.List[0]
	name, rest, _ := strings.Cut(strings.TrimPrefix(first.Text, "// "), " ")
	if public := a[name]; public != "" {
		first.Text = "// " + public + " " + rest
	}
}

func receiver(f *ast.FuncDecl) string {
	t := f.Recv.List[0].Type
	if pointer, ok := t.(*ast.StarExpr); ok {
		t = pointer.X
	}
	name, _ := t.(*ast.Ident)
	return name.Name
}

// rename gives the types in a declaration their public names. Names of fields, methods and other packages stay.
func (a aliases) rename(decl ast.Node) {
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			a.rename(n.Type)
			return false
		case *ast.FuncDecl:
			n.Body = nil
			a.rename(n.Recv)
			a.rename(n.Type)
			return false
		case *ast.SelectorExpr:
			return false
		case *ast.Ident:
			if public := a[n.Name]; public != "" {
				n.Name = public
			}
		}
		return true
	})
}
