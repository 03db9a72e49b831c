package lint

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// leastPatience is the shortest limit for a wait that only a hanging test reaches: a busy machine stops a process for
// many seconds.
const leastPatience = time.Minute

// shortWaits are the functions with shorter limits, because the limit ends there in every run, or a caller repeats.
var shortWaits = map[string]string{
	"internal/net/egress/tunnel_test.go TestTunnelErrors":                     "no server listens; the dial ends only with it",
	"internal/net/konnectivity/konnectivity_test.go TestStrategies":           "no agent fits; the dial ends only with it",
	"internal/storage/store/external/external_test.go TestWatchResumes":       "no server listens; the write ends only with it",
	"internal/storage/store/external/open_test.go TestOpenUnreachable":        "no server listens; Open ends only with it",
	"internal/storage/watchcache/twin_test.go watch":                          "the caller repeats",
	"test/attack/cost/attack_linux_test.go leave":                             "the client leaves early",
	"test/e2e/replicas_test.go withoutEtcd":                                   "no majority is there; the write ends only with it",
	"test/konnectivity/wire_test.go TestRestarts":                             "the caller repeats",
	"internal/feature/aggregation/isolation_bench_test.go BenchmarkIsolation": "a measurement",
}

// TestPatience checks that the limits of waits in tests are a minute or longer, outside of synctest's bubbles and of
// shortWaits: context.WithTimeout, context.WithDeadline, and time.After in a case that fails. A shorter limit fails on
// a busy machine.
func TestPatience(t *testing.T) {
	used := map[string]bool{}
	for _, name := range testFiles(t) {
		tree, err := parser.ParseFile(positions, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		bubble := func(s *ast.ImportSpec) bool { return s.Path.Value == `"testing/synctest"` }
		if slices.ContainsFunc(tree.Imports, bubble) {
			continue
		}
		short, err := filepath.Rel(filepath.Join("..", ".."), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			at := filepath.ToSlash(short) + " " + fn.Name.Name
			for _, limit := range limits(fn) {
				if used[at] = true; shortWaits[at] == "" {
					t.Errorf("%s: the limit is %s; wait for %s or longer, or for a signal, or name %q in shortWaits "+
						"with the reason", positions.Position(limit.pos), limit.of, leastPatience, at)
				}
			}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(shortWaits)) {
		if !used[at] {
			t.Errorf("%s has no short wait: delete it from shortWaits", at)
		}
	}
}

// testFiles returns the paths of all test files, also of the modules below the root.
func testFiles(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join("..", ".."), func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || d.Name() == ".git"):
			return filepath.SkipDir
		case strings.HasSuffix(name, "_test.go"):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

type limit struct {
	pos token.Pos
	of  time.Duration
}

// limits returns the short limits of a function.
func limits(fn *ast.FuncDecl) (all []limit) {
	add := func(n ast.Node, call *ast.CallExpr, arg int) {
		if arg >= len(call.Args) {
			return
		}
		if d, ok := duration(call.Args[arg]); ok && d > 0 && d < leastPatience {
			all = append(all, limit{n.Pos(), d})
		}
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if callOf(n, "context", "WithTimeout") {
				add(n, n, 1)
			}
		case *ast.CommClause:
			if call := received(n); call != nil && callOf(call, "time", "After") && fails(n.Body) {
				add(n, call, 0)
			}
		}
		return true
	})
	return all
}

// received returns the call that made the channel of a receiving case.
func received(c *ast.CommClause) *ast.CallExpr {
	if s, ok := c.Comm.(*ast.ExprStmt); ok {
		if from, ok := s.X.(*ast.UnaryExpr); ok && from.Op == token.ARROW {
			call, _ := from.X.(*ast.CallExpr)
			return call
		}
	}
	return nil
}

func callOf(call *ast.CallExpr, pkg, name string) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}

// fails reports whether statements fail a test.
func fails(body []ast.Stmt) (found bool) {
	for _, stmt := range body {
		ast.Inspect(stmt, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				name := strings.TrimSuffix(s.Sel.Name, "f")
				found = found || name == "Error" || name == "Fatal"
			}
			return !found
		})
	}
	return found
}

// duration returns the value of a constant like 5*time.Second.
func duration(e ast.Expr) (time.Duration, bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return duration(e.X)
	case *ast.BasicLit:
		n, err := strconv.ParseInt(e.Value, 0, 64)
		return time.Duration(n), err == nil
	case *ast.SelectorExpr:
		d, ok := map[string]time.Duration{
			"Nanosecond": 1, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond, "Second": time.Second,
			"Minute": time.Minute, "Hour": time.Hour,
		}[e.Sel.Name]
		return d, ok
	case *ast.BinaryExpr:
		x, okX := duration(e.X)
		y, okY := duration(e.Y)
		return x * y, okX && okY && e.Op == token.MUL
	}
	return 0, false
}

// TestLimits checks limits on functions of a text.
func TestLimits(t *testing.T) {
	for text, want := range map[string]int{
		`context.WithTimeout(ctx, 5*time.Second)`:                                 1,
		`context.WithTimeout(ctx, time.Second * 59)`:                              1,
		`context.WithTimeout(ctx, time.Minute)`:                                   0,
		`context.WithTimeout(ctx, patience)`:                                      0,
		`select { case <-done: case <-time.After(time.Second): t.Error("late") }`: 1,
		`select { case <-done: case <-time.After(time.Second): }`:                 0,
		`select { case <-done: case <-time.After(time.Hour): t.Fatal("late") }`:   0,
	} {
		tree, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() {\n"+text+"\n}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := limits(tree.Decls[0].(*ast.FuncDecl)); len(got) != want {
			t.Errorf("%s: %d limits, expected %d", text, len(got), want)
		}
	}
}

// TestBubblesCountTheirGoroutines checks that no test with a synctest bubble calls runtime.NumGoroutine, which also
// counts the goroutines that earlier tests left behind.
func TestBubblesCountTheirGoroutines(t *testing.T) {
	for _, name := range testFiles(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		bubble := bytes.Contains(text, []byte(`"testing/synctest"`))
		if bubble && bytes.Contains(text, []byte("runtime."+"NumGoroutine()")) {
			t.Errorf("%s calls runtime.NumGoroutine in a bubble: count the bubble's goroutines as control's bubbled does",
				name)
		}
	}
}
