package lint

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var updateRace = flag.Bool("update-race", false, "write test/norace.txt")

// noRacePage lists the packages that make unit tests without the race detector.
const noRacePage = "../../test/norace.txt"

// exempt are packages that the rule does not find: cost runs servers only as processes, which are built without the
// race detector, and lists validates large objects in one goroutine.
var exempt = []string{"test/attack/cost", "test/attack/lists"}

// mixed are packages with few concurrent tests among many long ones. Only these tests run with the race detector.
var mixed = []string{"internal/object/codec", "internal/object/schema/cel"}

// starters are the names of functions and methods that start goroutines or servers. T.Parallel is not one of them: it
// only lets tests share the state of their package, and no package has any.
var starters = map[string]bool{
	"AfterFunc": true, "Go": true, "Listen": true, "ListenAndServe": true, "NewServer": true, "NewTLSServer": true,
	"NewUnstartedServer": true, "RunParallel": true, "Serve": true,
}

// TestNoRace holds test/norace.txt to its rule: a package is on the list if neither its tests, nor the package, nor a
// package of this module that they import starts a goroutine or a server. There the race detector finds nothing, and
// tests take two to ten times as long. The names of concurrent tests follow a package of mixed. -update-race writes the
// list.
func TestNoRace(t *testing.T) {
	var page strings.Builder
	page.WriteString("# The packages that make unit tests without the race detector, except for the named tests.\n" +
		"# go test ./internal/lint -run TestNoRace -update-race makes this list; TestNoRace has the rule.\n")
	for _, line := range sequential(t) {
		page.WriteString("./" + line + "\n")
	}
	old, err := os.ReadFile(filepath.FromSlash(noRacePage))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if string(old) == page.String() {
		return
	}
	if !*updateRace {
		t.Fatal("test/norace.txt is stale; run: go test ./internal/lint -run TestNoRace -update-race")
	}
	if err := os.WriteFile(filepath.FromSlash(noRacePage), []byte(page.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// room is a package with its imports of this module and its goroutines.
type room struct {
	starts          bool            // the package starts goroutines or servers
	imports         map[string]bool // of the package
	testImports     map[string]bool
	concurrentTests []string // functions of tests that start goroutines or servers
	tests           bool
}

// sequential returns the lines of the list, sorted.
func sequential(t *testing.T) []string {
	t.Helper()
	rooms := map[string]*room{}
	for _, f := range sources(t) {
		r := rooms[f.pkg]
		if r == nil {
			r = &room{imports: map[string]bool{}, testImports: map[string]bool{}}
			rooms[f.pkg] = r
		}
		imports := r.imports
		if f.test {
			imports, r.tests = r.testImports, true
			r.concurrentTests = append(r.concurrentTests, concurrentFunctions(t, f)...)
		} else {
			r.starts = r.starts || concurrent(f.tree)
		}
		for _, path := range f.imports {
			if path == module {
				imports["."] = true
			} else if p, ok := strings.CutPrefix(path, module+"/"); ok {
				imports[p] = true
			}
		}
	}
	list := slices.Clone(exempt)
	for p, r := range rooms {
		if !r.tests || slices.Contains(exempt, p) ||
			reaches(rooms, append(slices.Collect(maps.Keys(r.testImports)), p), map[string]bool{}) {
			continue
		}
		slices.Sort(r.concurrentTests)
		if len(r.concurrentTests) == 0 {
			list = append(list, p)
		} else if slices.Contains(mixed, p) {
			list = append(list, p+" "+strings.Join(r.concurrentTests, "|"))
		}
	}
	slices.Sort(list)
	return list
}

// concurrentFunctions returns the names of a test file's functions that start goroutines or servers.
func concurrentFunctions(t *testing.T, f file) (names []string) {
	t.Helper()
	name := filepath.Join("..", "..", f.path)
	tree, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range tree.Decls {
		fn, isFunc := d.(*ast.FuncDecl)
		switch {
		case !concurrent(d):
		case isFunc && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test"):
			names = append(names, fn.Name.Name)
		case slices.Contains(mixed, f.pkg):
			t.Errorf("%s: a helper starts a goroutine; start it in a test, or take the package out of mixed", f.path)
		default:
			names = append(names, "helper")
		}
	}
	return names
}

// reaches reports whether a package of the list, or an import of it, starts a goroutine or a server.
func reaches(rooms map[string]*room, from []string, seen map[string]bool) bool {
	for _, p := range from {
		if seen[p] {
			continue
		}
		seen[p] = true
		if r := rooms[p]; r != nil && (r.starts || reaches(rooms, slices.Collect(maps.Keys(r.imports)), seen)) {
			return true
		}
	}
	return false
}

// concurrent reports whether code has a go statement or calls one of starters.
func concurrent(tree ast.Node) (found bool) {
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.SelectorExpr:
			found = found || starters[n.Sel.Name]
		}
		return !found
	})
	return found
}
