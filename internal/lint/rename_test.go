package lint

import (
	"go/ast"
	"testing"
)

// renames are the packages that give files a new name by themselves, with the reason why such a name need not be on
// disk when the caller goes on. An entry that is no longer needed fails the test.
var renames = map[string]string{
	"cmd/bowsprit/aspod":           "a pod's files are in memory",
	"internal/storage/durable":     "it is what the others call",
	"cmd/bowsprit":                 "a folder for envtest is made again",
	"internal/front/audit":         "a full log that keeps its name grows on",
	"internal/feature/aggregation": "what another server has said is asked again",
}

// TestRenames finds files that take the place of others and could be the old ones again after a loss of power.
func TestRenames(t *testing.T) {
	used := map[string]bool{}
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok || call.Sel.Name != "Rename" {
				return true
			}
			if pkg, ok := call.X.(*ast.Ident); !ok || pkg.Name != "os" {
				return true
			}
			used[f.pkg] = true
			if renames[f.pkg] == "" {
				t.Errorf("%s renames a file by itself: use storage/durable, or say in renames why not",
					positions.Position(call.Pos()))
			}
			return true
		})
	}
	for pkg := range renames {
		if !used[pkg] {
			t.Errorf("%s renames nothing any more", pkg)
		}
	}
}
