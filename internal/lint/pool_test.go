package lint

import (
	"go/ast"
	"testing"
)

// ownPools are the packages with a sync.Pool of their own, and the reasons.
var ownPools = map[string]string{
	"internal/request/reuse":  "its pools spoil",
	"internal/object/codec":   "results are copies, coders are cleared; an import would lengthen the longest chain",
	"internal/workload/stage": "a sheet has no data of an execution but its budget, which take fills",
}

// TestPools checks that only ownPools use sync.Pool: the pools of internal/request/reuse spoil returned values in
// binaries with the race detector, so that a late reader fails a test.
func TestPools(t *testing.T) {
	used := map[string]bool{}
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || s.Sel.Name != "Pool" {
				return true
			}
			if x, ok := s.X.(*ast.Ident); !ok || x.Name != "sync" {
				return true
			}
			if used[f.pkg] = true; ownPools[f.pkg] == "" {
				t.Errorf("%s: use a pool of internal/request/reuse instead of sync.Pool", positions.Position(n.Pos()))
			}
			return true
		})
	}
	for p := range ownPools {
		if !used[p] {
			t.Errorf("%s has no sync.Pool: delete it from ownPools", p)
		}
	}
}
