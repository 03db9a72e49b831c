package docs_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/format"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/testing/publicapi"
)

var update = flag.Bool("update", false, "write the references anew")

// packages are the packages that a program may import, by the page that documents them.
var packages = map[string]string{"bowsprit": ".", "testserver": "testserver", "extension": "extension"}

// TestGoReference compares docs/go/*.md with the exports of the packages and their comments. With -update it writes the
// pages.
func TestGoReference(t *testing.T) {
	t.Parallel()
	for name, dir := range packages {
		got := reference(t, dir)
		file := filepath.Join("go", name+".md")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != got {
			t.Errorf("docs/%s is not as the code is: run go test ./docs -update and look at the difference (%v)",
				filepath.ToSlash(file), err)
		}
	}
}

// page writes the reference of one package.
type page struct {
	bytes.Buffer
	files *token.FileSet
	pkg   *doc.Package
}

// reference returns the page about the package in a directory.
func reference(t *testing.T, dir string) string {
	t.Helper()
	files := token.NewFileSet()
	pkg, err := publicapi.Parse(files, "..", dir)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{files: files, pkg: pkg}
	fmt.Fprintf(p, "# Go package %s\n\nGenerated from the code.\n\n```go\nimport %q\n```\n\n", pkg.Name, pkg.ImportPath)
	p.text(p.pkg.Doc)
	p.values(p.pkg.Consts)
	p.values(p.pkg.Vars)
	p.functions("##", p.pkg.Funcs)
	for _, typ := range p.pkg.Types {
		p.printf("## type %s\n\n", typ.Name)
		p.code(typ.Decl)
		p.text(typ.Doc)
		p.values(typ.Consts)
		p.values(typ.Vars)
		p.functions("###", typ.Funcs)
		p.functions("###", typ.Methods)
	}
	return strings.TrimRight(p.String(), "\n") + "\n"
}

func (p *page) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *page) values(all []*doc.Value) {
	for _, v := range all {
		p.code(v.Decl)
		p.text(v.Doc)
	}
}

func (p *page) functions(level string, all []*doc.Func) {
	for _, f := range all {
		name := "func " + f.Name
		if f.Recv != "" {
			name = fmt.Sprintf("func (%s) %s", f.Recv, f.Name)
		}
		p.printf("%s %s\n\n", level, name)
		p.code(f.Decl)
		p.text(f.Doc)
	}
}

// code writes a declaration, without bodies of functions.
func (p *page) code(decl ast.Node) {
	p.WriteString("```go\n")
	if err := format.Node(p, p.files, decl); err != nil {
		panic(err) // a parsed file can be printed
	}
	p.WriteString("\n```\n\n")
}

// text writes a comment as Markdown, in lines of at most 120 columns.
func (p *page) text(words string) {
	printer := p.pkg.Printer()
	printer.HeadingLevel = 3
	printer.HeadingID = func(*comment.Heading) string { return "" }
	printer.DocLinkURL = p.link
	code := false
	for line := range strings.Lines(string(printer.Markdown(p.pkg.Parser().Parse(words)))) {
		indented := strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
		switch {
		case indented && !code:
			p.WriteString("```go\n")
		case !indented && code && strings.TrimSpace(line) != "":
			p.WriteString("```\n\n")
		}
		if strings.TrimSpace(line) != "" || !code {
			code = indented
		}
		if indented {
			p.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, "\t"), "    "))
			continue
		}
		p.wrap(strings.TrimRight(line, "\n"))
	}
	if code {
		p.WriteString("```\n")
	}
	p.WriteString("\n")
}

// link returns where a name in a comment leads: to its heading on this page, or to pkg.go.dev.
func (p *page) link(to *comment.DocLink) string {
	if to.ImportPath == "" || to.ImportPath == p.pkg.ImportPath {
		for _, typ := range p.pkg.Types {
			switch {
			case to.Recv == "" && typ.Name == to.Name:
				return "#type-" + strings.ToLower(to.Name)
			case to.Recv == typ.Name:
				return "#func-" + strings.ToLower(to.Recv+"-"+to.Name)
			}
		}
		to.ImportPath = p.pkg.ImportPath
	}
	return to.DefaultURL("https://pkg.go.dev")
}

// wrap writes a line in several that are not too long.
func (p *page) wrap(line string) {
	const columns = 120
	indent := ""
	if trimmed := strings.TrimLeft(line, " "); strings.HasPrefix(trimmed, "- ") {
		indent = strings.Repeat(" ", len(line)-len(trimmed)+2)
	}
	used := 0
	for i, word := range strings.Fields(line) {
		switch {
		case i == 0:
			p.WriteString(strings.Repeat(" ", max(0, len(indent)-2)))
		case used+1+len(word) > columns:
			p.WriteString("\n" + indent)
			used = len(indent)
		default:
			p.WriteString(" ")
			used++
		}
		p.WriteString(word)
		used += len(word)
	}
	p.WriteString("\n")
}
