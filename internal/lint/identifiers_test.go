package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// forbidden are names without a noun, and the reason: each says nothing of the value, or only that a program has
// received, kept or printed it.
var forbidden = map[string]string{
	"what":      "name the thing: info, noun, desc, resource",
	"who":       "name the person: u, user, caller, name",
	"whose":     "name the owner",
	"whom":      "name the person",
	"somebody":  "name the person",
	"beside":    "name the additional data: extras",
	"awaited":   "name the state: pending, deferred",
	"described": "name the result",
	"wishful":   "name the data: constraints, preferences",
	"keeper":    "name the task: store, reconciler, publisher",
	"told":      "name the message or the state: sent, notified, events",
	"heard":     "name the message or the state: received, lastSeen",
}

// forbiddenOutside are names that only variables of a function may have.
var forbiddenOutside = map[string]string{
	"kept":     "name the stored thing, or the check",
	"listed":   "name the list",
	"noted":    "name the record",
	"question": "name the request: query",
	"said":     "name the value",
	"say":      "name the output: print, record, describe",
	"says":     "name the text: want, text",
	"tell":     "name the action: notify, send, register",
	"hear":     "name the action: receive, read",
	"moment":   "name the state at a time: version, snapshot, sample",
	"wish":     "name the request, or the configuration",
	"way":      "name the connection or the method",
	"place":    "name the position: location, index, node, share",
	"knows":    "name the check",
}

// unnamed are the folders with declarations that still have forbidden names. A folder leaves the list when it has none.
var unnamed = []string{
	"internal/admit", "internal/front", "internal/kinds/rule", "internal/rest", "internal/server",
	"internal/storage/store", "internal/verb", "internal/testing", "test", "tools", "testserver",
}

// TestIdentifiers looks for forbidden names among the declarations of all Go files, of the other modules too.
func TestIdentifiers(t *testing.T) {
	root := filepath.Join("..", "..")
	files := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); base == "testdata" || base == "bin" || name != root && base[0] == '.' {
				return filepath.SkipDir
			}
			return nil
		}
		rel := strings.TrimPrefix(filepath.ToSlash(name), "../../")
		in := func(folder string) bool { return strings.HasPrefix(rel, folder+"/") }
		if !strings.HasSuffix(name, ".go") || slices.ContainsFunc(unnamed, in) {
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil || strings.HasPrefix(string(src), "// Code generated") {
			return err
		}
		files++
		positions := token.NewFileSet()
		tree, err := parser.ParseFile(positions, name, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for id, reason := range forbiddenIn(tree) {
			at := positions.Position(id.Pos())
			t.Errorf("%s:%d: %s: %s", filepath.ToSlash(at.Filename), at.Line, id.Name, reason)
		}
		return nil
	})
	if err != nil || files < 500 {
		t.Fatalf("%d files, %v", files, err)
	}
}

// forbiddenIn returns the declared identifiers of a file with forbidden names, and the reasons.
func forbiddenIn(tree *ast.File) map[*ast.Ident]string {
	found := map[*ast.Ident]string{}
	local := func(e ast.Expr) {
		if id, ok := e.(*ast.Ident); ok && forbidden[id.Name] != "" {
			found[id] = forbidden[id.Name]
		}
	}
	outside := func(id *ast.Ident) {
		local(id)
		if reason := forbiddenOutside[id.Name]; reason != "" {
			found[id] = reason
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			outside(n.Name)
		case *ast.Field:
			for _, id := range n.Names {
				outside(id)
			}
		case *ast.TypeSpec:
			outside(n.Name)
		case *ast.ValueSpec:
			for _, id := range n.Names {
				local(id)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					local(e)
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				local(n.Key)
				local(n.Value)
			}
		}
		return true
	})
	for _, decl := range tree.Decls {
		if d, ok := decl.(*ast.GenDecl); ok {
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for _, id := range v.Names {
						outside(id)
					}
				}
			}
		}
	}
	return found
}

func TestForbiddenIn(t *testing.T) {
	tree, err := parser.ParseFile(token.NewFileSet(), "", `package p

var kept = 1

type place struct{ said, fine int }

func tell(who string) (way bool) {
	kept, fine := 1, 2
	for what := range 3 {
		heard, kept := what, 1
	}
	return kept == fine
}
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for id := range forbiddenIn(tree) {
		names[id.Name]++
	}
	want := []string{"kept", "place", "said", "tell", "who", "way", "what", "heard"}
	for _, name := range want {
		if names[name] != 1 {
			t.Errorf("%s is found %d times", name, names[name])
		}
	}
	if len(names) != len(want) {
		t.Errorf("found %v", names)
	}
}
