package lint

import (
	"cmp"
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
	"teller":    "name the task: watcher, notifier",
	"census":    "name the counted objects",
	"told":      "name the message or the state: sent, notified, events",
	"heard":     "name the message or the state: received, lastSeen",
	"asked":     "name the request or the state: info, req, requested",
	"said":      "name the value: text, message, output, condition",
	"noted":     "name the record: annotations, format",
	"question":  "name the request: query, pendingCall",
	"say":       "name the output: print, send, record, describe",
	"says":      "name the text: want, text",
	"tell":      "name the action: notify, send, register",
	"tells":     "name the action: notifies, sends",
	"hear":      "name the action: receive, read",
	"hears":     "name the action: receives",
	"moment":    "name the state at a time: version, snapshot, timestamp",
	"place":     "name the position: location, index, slot, path",
	"wish":      "name the request, or the configuration",
	"way":       "name the connection, the direction or the method",
	"knows":     "name the check",
}

// forbiddenOutside are names that only variables of a function may have.
var forbiddenOutside = map[string]string{
	"kept":   "name the stored thing, or the check",
	"listed": "name the list",
}

// TestIdentifiers looks for forbidden names among the declarations, the packages and the names of all Go files, of the
// other modules too. An exported name is compared without its capital letter.
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
		if !strings.HasSuffix(name, ".go") {
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
		if reason := reasonOutside(strings.TrimSuffix(filepath.Base(name), ".go")); reason != "" {
			t.Errorf("%s: %s", filepath.ToSlash(name), reason)
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

// reasonOutside returns the reason against a name outside of functions, or "".
func reasonOutside(name string) string {
	name = strings.ToLower(name[:1]) + name[1:]
	return cmp.Or(forbidden[name], forbiddenOutside[name])
}

// forbiddenIn returns the identifiers that a file declares with forbidden names, its package among them, and the
// reasons.
func forbiddenIn(tree *ast.File) map[*ast.Ident]string {
	found := map[*ast.Ident]string{}
	local := func(e ast.Expr) {
		if id, ok := e.(*ast.Ident); ok && forbidden[id.Name] != "" {
			found[id] = forbidden[id.Name]
		}
	}
	outside := func(id *ast.Ident) {
		if reason := reasonOutside(id.Name); reason != "" {
			found[id] = reason
		}
	}
	outside(tree.Name)
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

// TestForbiddenIn checks that a declaration of each sort is found, and that local variables may be called kept.
func TestForbiddenIn(t *testing.T) {
	tree, err := parser.ParseFile(token.NewFileSet(), "", `package keeper

var kept = 1

const Moment = 2

type place struct{ said, fine int }

type Teller interface{ Hear(question int) }

func tell(who string) (way bool) {
	kept, fine := 1, 2
	for what := range 3 {
		heard, kept := what, 1
	}
	var noted int
	return kept == fine
}
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for id := range forbiddenIn(tree) {
		names = append(names, id.Name)
	}
	slices.Sort(names)
	want := []string{
		"Hear", "Moment", "Teller",
		"heard", "keeper", "kept", "noted", "place", "question", "said", "tell", "way", "what", "who",
	}
	if !slices.Equal(names, want) {
		t.Errorf("found %v, want %v", names, want)
	}
	if reasonOutside("census") == "" || reasonOutside("store") != "" {
		t.Error("the names of files are not checked")
	}
}
