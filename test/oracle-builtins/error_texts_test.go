package oraclebuiltins

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// updateErrors rewrites the page of error texts.
var updateErrors = flag.Bool("update-errors", false, "write docs/errors.md anew")

// errorsPage lists the texts of our own errors; its head is written by hand.
const errorsPage = "../../docs/errors.md"

// TestErrorTexts compares docs/errors.md with the error texts in the server's code that no library of Kubernetes has.
func TestErrorTexts(t *testing.T) {
	t.Parallel()
	kube := kubernetesTexts(t)
	found := map[string][]string{} // by package: rows
	for file, tree := range serverFiles(t) {
		dir := filepath.ToSlash(filepath.Dir(file))
		for _, e := range errorTexts(tree) {
			ours := slices.ContainsFunc(e.pieces(), func(p string) bool { return !strings.Contains(kube, p) })
			if ours && e.printed() {
				found[dir] = append(found[dir], e.row())
			}
		}
	}
	var b strings.Builder
	rows := 0
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		slices.Sort(found[dir])
		lines := slices.Compact(found[dir])
		rows += len(lines)
		fmt.Fprintf(&b, "\n## %s\n\n| text | answer |\n|---|---|\n%s\n", dir, strings.Join(lines, "\n"))
	}
	if rows < 200 {
		t.Errorf("only %d error texts", rows)
	}
	text, err := os.ReadFile(errorsPage)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "<!-- the rest is generated -->\n"
	head, rest, marked := strings.Cut(string(text), mark)
	if *updateErrors {
		if err := os.WriteFile(errorsPage, []byte(head+mark+b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !marked || rest != b.String() {
		t.Errorf("docs/errors.md is not as the code is: run (cd test/oracle-builtins && " +
			"go test -run TestErrorTexts . -update-errors) and look at the difference")
	}
}

// errorText is the format of an error, and the function that makes it.
type errorText struct{ format, maker string }

// answers are the codes of errors that clients get, by the function that makes them.
var answers = map[string]string{
	"NewAlreadyExists": "409 AlreadyExists", "NewBadRequest": "400 BadRequest", "NewConflict": "409 Conflict",
	"NewForbidden": "403 Forbidden", "NewInternalError": "500 InternalError", "NewInvalid": "422 Invalid",
	"NewMethodNotSupported": "405 MethodNotAllowed", "NewNotFound": "404 NotFound",
	"NewResourceExpired":    "410 Expired",
	"NewServiceUnavailable": "503 ServiceUnavailable", "NewTimeoutError": "504 Timeout",
	"NewTooManyRequests": "429 TooManyRequests", "NewUnauthorized": "401 Unauthorized",
	"Invalid": "422, invalid value", "Forbidden": "422, forbidden", "Required": "422, required value",
	"NotSupported": "422, unsupported value", "TypeInvalid": "422, invalid type",
	"InternalError": "422, internal error",
}

var (
	formatVerb = regexp.MustCompile(`%(?:\[\d+\])?[-+# 0]*[0-9.]*[a-zA-Z]|%%`)
	letters    = regexp.MustCompile(`[a-zA-Z]{2,}`)
)

// pieces are the fixed parts of a text, without short ones.
func (e errorText) pieces() (all []string) {
	for _, p := range formatVerb.Split(e.format, -1) {
		if p = strings.Trim(p, " :,.;()\"'\n"); len(letters.FindAllString(p, -1)) >= 2 {
			all = append(all, p)
		}
	}
	return all
}

// printed reports whether a text describes the problem, and not only the source of another error.
func (e errorText) printed() bool {
	return len(letters.FindAllString(formatVerb.ReplaceAllString(e.format, " "), -1)) >= 3
}

func (e errorText) row() string {
	text := strings.Join(strings.Fields(formatVerb.ReplaceAllString(e.format, "…")), " ")
	answer := answers[e.maker]
	return "| `" + strings.ReplaceAll(strings.ReplaceAll(text, "`", "'"), "|", `\|`) + "` | " + answer + " |"
}

// errorTexts returns the texts of errors that a file makes.
func errorTexts(tree *ast.File) (all []errorText) {
	constants := fileConstants(tree)
	ast.Inspect(tree, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		maker := errorMaker(call)
		if maker == "" {
			return true
		}
		for _, arg := range call.Args {
			if inner, ok := arg.(*ast.CallExpr); ok { // a text that Sprintf makes; errors are found by themselves
				s, ok := inner.Fun.(*ast.SelectorExpr)
				if !ok || s.Sel.Name != "Sprintf" || len(inner.Args) == 0 {
					continue
				}
				arg = inner.Args[0]
			}
			if text, ok := constantText(arg, constants); ok {
				all = append(all, errorText{text, maker})
			}
		}
		return true
	})
	return all
}

// errorMaker returns the name of the function that a call makes an error with, "" if it makes none.
func errorMaker(call *ast.CallExpr) string {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	of, ok := f.X.(*ast.Ident)
	if !ok {
		return ""
	}
	switch name := of.Name + "." + f.Sel.Name; {
	case name == "fmt.Errorf", name == "errors.New", of.Name == "field", strings.HasPrefix(name, "apierrors.New"):
		return f.Sel.Name
	}
	return ""
}

// fileConstants returns the constants of a file that are texts.
func fileConstants(tree *ast.File) map[string]string {
	constants := map[string]string{}
	ast.Inspect(tree, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == len(spec.Names) {
			for i, name := range spec.Names {
				if text, ok := constantText(spec.Values[i], nil); ok {
					constants[name.Name] = text
				}
			}
		}
		return true
	})
	return constants
}

// constantText returns the text of literals, constants of the file, and their sums, in which anything else differs from
// case to case.
func constantText(e ast.Expr, constants map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.Ident:
		text, ok := constants[e.Name]
		return text, ok
	case *ast.BinaryExpr:
		x, first := constantText(e.X, constants)
		y, second := constantText(e.Y, constants)
		if !first {
			x = "%v"
		}
		if !second {
			y = "%v"
		}
		return x + y, e.Op == token.ADD && (first || second)
	}
	return "", false
}

// serverFiles are the Go files of the server: of this repository without tests, commands and tools.
func serverFiles(t *testing.T) map[string]*ast.File {
	t.Helper()
	root, all := os.DirFS("../.."), map[string]*ast.File{}
	err := fs.WalkDir(root, ".", func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (slices.Contains([]string{"bin", "cmd", "docs", "examples", "test", "tools", ".git"}, file) ||
			e.Name() == "testdata" || e.Name() == "testing" || e.Name() == "gen"):
			return fs.SkipDir
		case e.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		const mode = parser.SkipObjectResolution
		tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", file), nil, mode)
		all[file] = tree
		return err
	})
	if err != nil || len(all) < 500 {
		t.Fatalf("%d files: %v", len(all), err)
	}
	return all
}

// kubernetesTexts returns all text literals of the libraries that Kubernetes' API server is made of.
func kubernetesTexts(t *testing.T) string {
	t.Helper()
	modules := []string{"k8s.io/kubernetes", "k8s.io/apiserver", "k8s.io/apimachinery",
		"k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator", "k8s.io/client-go", "k8s.io/component-base", "k8s.io/pod-security-admission",
		"k8s.io/component-helpers", "k8s.io/kube-openapi", "sigs.k8s.io/structured-merge-diff/v6"}
	out, err := exec.Command("go", append([]string{"list", "-m", "-f", "{{.Dir}}"}, modules...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var b strings.Builder
	for _, dir := range strings.Fields(string(out)) {
		err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && slices.Contains([]string{"test", "cmd", "vendor", "testing", "cluster"}, e.Name()):
				return fs.SkipDir
			case e.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") ||
				strings.HasPrefix(e.Name(), "zz_generated") || e.Name() == "generated.pb.go":
				return nil
			}
			source, err := os.ReadFile(file)
			if err == nil {
				literals(&b, source)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// literals writes the text literals of a source, and joins concatenated ones.
func literals(b *strings.Builder, source []byte) {
	files := token.NewFileSet()
	var s scanner.Scanner
	s.Init(files.AddFile("", -1, len(source)), source, nil, 0)
	for added := false; ; {
		_, tok, text := s.Scan()
		switch tok {
		case token.EOF:
			b.WriteByte('\n')
			return
		case token.ADD:
			added = true
		case token.STRING:
			if !added {
				b.WriteByte('\n')
			}
			if plain, err := strconv.Unquote(text); err == nil {
				b.WriteString(plain)
			}
			added = false
		default:
			added = false
		}
	}
}
