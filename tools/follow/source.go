package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// source is a parsed Go file.
type source struct {
	*ast.File
	folder string // below the walked folder, with slashes
	set    *token.FileSet
}

// goFiles parses the Go files below a folder for which wanted returns true, in the order of their paths. A missing
// folder has none: an older release may lack it.
func goFiles(root string, wanted func(path string) bool, use func(source) error) error {
	if _, err := os.Stat(root); os.IsNotExist(err) {
		return nil
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || !wanted(path) {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		return use(source{file, filepath.ToSlash(folder), set})
	})
}

// handwritten selects files that are neither tests nor generated.
func handwritten(path string) bool {
	name := filepath.Base(path)
	return !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "zz_generated") &&
		!strings.HasPrefix(name, "generated") && !strings.HasSuffix(name, "_swagger_doc_generated.go")
}

// text returns the source of a node in canonical form, without comments.
func (s source) text(node ast.Node) string {
	var b bytes.Buffer
	if f, ok := node.(*ast.FuncDecl); ok {
		bare := *f
		bare.Doc = nil
		node = &bare
	}
	_ = printer.Fprint(&b, s.set, node)
	return b.String()
}

// functions calls use with the name and the source of each function.
func (s source) functions(use func(name, text string)) {
	for _, d := range s.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil && len(f.Recv.List) > 0 {
			name = strings.TrimPrefix(s.text(f.Recv.List[0].Type), "*") + "." + name
		}
		use(name, s.text(f))
	}
}

// hash is a short hash of a text.
func hash(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16] }

// literal returns the value of a string literal, "" for other expressions.
func literal(e ast.Expr) string {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING || len(l.Value) < 2 {
		return ""
	}
	return l.Value[1 : len(l.Value)-1]
}
