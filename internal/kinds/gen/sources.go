package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// typeName is a Go type by import path and name.
type typeName struct{ path, name string }

func (n typeName) String() string { return n.path + "." + n.name }

// id is the type's name in OpenAPI documents: "io.k8s.api.core.v1.Event".
func (n typeName) id() string { return n.packageID() + "." + n.name }

// packageID turns the first element of the import path around: "k8s.io/api/core/v1" is "io.k8s.api.core.v1".
func (n typeName) packageID() string {
	host, rest, _ := strings.Cut(n.path, "/")
	parts := strings.Split(host, ".")
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return strings.Join(parts, ".") + "." + strings.ReplaceAll(rest, "/", ".")
}

// declaration is the declaration of a type with its context.
type declaration struct {
	path    string
	spec    *ast.TypeSpec
	doc     comment
	imports map[string]string // local name -> import path, of the file
}

// resolve returns the type that an identifier or a selector names.
func (d *declaration) resolve(e ast.Expr) (typeName, error) {
	switch e := e.(type) {
	case *ast.Ident:
		return typeName{d.path, e.Name}, nil
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && d.imports[x.Name] != "" {
			return typeName{d.imports[x.Name], e.Sel.Name}, nil
		}
	}
	return typeName{}, fmt.Errorf("type expression %T is not supported", e)
}

// sources finds type declarations in the packages that the module depends on.
type sources struct {
	files *token.FileSet
	types map[typeName]*declaration
	read  map[string]bool // packages
	// constants are the constants that are literals, or names of others.
	constants map[typeName]constant
}

func newSources() *sources {
	return &sources{
		files: token.NewFileSet(), types: map[typeName]*declaration{}, read: map[string]bool{},
		constants: map[typeName]constant{},
	}
}

// lookup returns the declaration of a type, following aliases.
func (s *sources) lookup(n typeName) (*declaration, error) {
	if err := s.load(n.path); err != nil {
		return nil, err
	}
	d := s.types[n]
	if d == nil {
		return nil, fmt.Errorf("no type %s", n)
	}
	if !d.spec.Assign.IsValid() {
		return d, nil
	}
	of, err := d.resolve(d.spec.Type)
	if err != nil {
		return nil, err
	}
	return s.lookup(of)
}

// structOf returns the struct of a type, following its underlying types ("type A b.B" has the fields of b.B), and the
// declaration with the struct, in which the types of the fields are to be looked up.
func (s *sources) structOf(d *declaration) (*ast.StructType, *declaration, bool) {
	for {
		if st, ok := d.spec.Type.(*ast.StructType); ok {
			return st, d, true
		}
		if id, ok := d.spec.Type.(*ast.Ident); ok && basic(id.Name) != nil {
			return nil, nil, false
		}
		n, err := d.resolve(d.spec.Type)
		if err != nil { // a list, a map
			return nil, nil, false
		}
		if d, err = s.lookup(n); err != nil {
			return nil, nil, false
		}
	}
}

// load reads a package, once.
func (s *sources) load(importPath string) error {
	if s.read[importPath] {
		return nil
	}
	s.read[importPath] = true
	if err := s.readPackage(importPath); err != nil {
		return fmt.Errorf("read package %s: %w", importPath, err)
	}
	return nil
}

func (s *sources) readPackage(importPath string) error {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", importPath).Output()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(string(bytes.TrimSpace(out)), "*.go"))
	if err != nil {
		return err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		s.readFile(importPath, file)
	}
	return nil
}

func (s *sources) readFile(importPath string, file *ast.File) {
	imports := map[string]string{}
	for _, im := range file.Imports {
		p, _ := strconv.Unquote(im.Path.Value)
		name := path.Base(p)
		if im.Name != nil {
			name = im.Name.Name
		}
		imports[name] = p
	}
	for _, decl := range file.Decls {
		gd, ok := decl.(*ast.GenDecl)
		if ok && gd.Tok == token.CONST {
			s.readConstants(importPath, imports, gd)
		}
		if !ok || gd.Tok != token.TYPE {
			continue
		}
		for _, spec := range gd.Specs {
			ts := spec.(*ast.TypeSpec)
			doc := ts.Doc
			if doc == nil {
				doc = gd.Doc
			}
			s.types[typeName{importPath, ts.Name.Name}] = &declaration{importPath, ts, comment{doc.Text()}, imports}
		}
	}
}

// value returns the JSON of a marker "+default=": a JSON value, or "ref(Name)" for a constant of package path.
func (s *sources) value(path, marker string) (string, error) {
	name, ok := strings.CutPrefix(marker, "ref(")
	if !ok {
		return marker, nil
	}
	v, ok := s.constants[typeName{path, strings.TrimSuffix(name, ")")}]
	if !ok || v.value == "" {
		return "", fmt.Errorf("no constant for %s in %s", marker, path)
	}
	return v.value, nil
}
