package bowsprit_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/doc"
	"go/printer"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/testing/publicapi"
)

// apiFile lists the public API.
const apiFile = "testdata/api.txt"

var update = flag.Bool("update", false, "rewrite "+apiFile)

// TestAPI compares the API of this package and of testserver with apiFile, one line for each name. A changed line is a
// changed promise, so it shows in the diff. -update rewrites the file.
func TestAPI(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, dir := range []string{".", "testserver", "extension"} {
		lines = append(lines, exported(t, dir)...)
	}
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(apiFile, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(apiFile)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		have := strings.Split(strings.TrimSuffix(string(want), "\n"), "\n")
		for _, l := range lines {
			if !slices.Contains(have, l) {
				t.Errorf("not in %s: %s", apiFile, l)
			}
		}
		for _, l := range have {
			if !slices.Contains(lines, l) {
				t.Errorf("only in %s: %s", apiFile, l)
			}
		}
		t.Error("the public API has changed: if that is meant, go test . -run TestAPI -update")
	}
}

// exported lists the exported names of the package in a directory, sorted, and requires a comment on each. It resolves
// aliases.
func exported(t *testing.T, dir string) []string {
	t.Helper()
	fset := token.NewFileSet()
	pkg, err := publicapi.Parse(fset, ".", dir)
	if err != nil {
		t.Fatal(err)
	}
	l := &listing{T: t, fset: fset, pkg: pkg.Name}
	l.values(pkg.Consts)
	l.values(pkg.Vars)
	l.functions("", pkg.Funcs)
	for _, typ := range pkg.Types {
		l.declared(typ)
		l.values(typ.Consts)
		l.values(typ.Vars)
		l.functions("", typ.Funcs)
		l.functions(typ.Name, typ.Methods)
	}
	slices.Sort(l.lines)
	return slices.Compact(l.lines)
}

// listing collects the lines of one package.
type listing struct {
	*testing.T
	fset  *token.FileSet
	pkg   string
	lines []string
}

func (l *listing) add(comment, text string) {
	l.Helper()
	if strings.TrimSpace(comment) == "" {
		l.Errorf("%s: %s has no comment", l.pkg, text)
	}
	l.lines = append(l.lines, l.pkg+": "+text)
}

func (l *listing) functions(receiver string, all []*doc.Func) {
	for _, f := range all {
		decl := *f.Decl
		decl.Doc, decl.Body = nil, nil
		if receiver != "" && !ast.IsExported(strings.TrimPrefix(f.Recv, "*")) {
			continue
		}
		l.add(f.Doc, l.text(&decl))
	}
}

func (l *listing) values(all []*doc.Value) {
	for _, v := range all {
		for _, spec := range v.Decl.Specs {
			s := spec.(*ast.ValueSpec)
			for _, name := range s.Names {
				if name.IsExported() {
					l.add(v.Doc+s.Doc.Text()+s.Comment.Text(), v.Decl.Tok.String()+" "+name.Name)
				}
			}
		}
	}
}

// declared lists a type and its fields.
func (l *listing) declared(typ *doc.Type) {
	for _, spec := range typ.Decl.Specs {
		s := spec.(*ast.TypeSpec)
		fields, ok := s.Type.(*ast.StructType)
		if !ok {
			l.add(typ.Doc, "type "+typ.Name+" "+l.text(s.Type))
			continue
		}
		l.add(typ.Doc, "type "+typ.Name+" struct")
		for _, f := range fields.Fields.List {
			for _, name := range f.Names {
				if name.IsExported() {
					l.add(f.Doc.Text()+f.Comment.Text(), "type "+typ.Name+" struct, "+name.Name+" "+l.text(f.Type))
				}
			}
		}
	}
}

func (l *listing) text(node any) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, l.fset, node); err != nil {
		l.Fatal(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
