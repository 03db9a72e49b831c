package lint

import (
	"go/ast"
	"go/token"
	"strconv"
	"testing"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

// TestRefs holds that features and simulated components take the prefixes of built-in kinds from kinds/ref. A prefix
// that differs from the resource's name is no literal anywhere in them; no prefix is a literal argument of Collection.
func TestRefs(t *testing.T) {
	prefixes, odd := map[string]bool{}, map[string]bool{"apiregistration.k8s.io/apiservices": true}
	for _, r := range kinds.Resources() {
		if r.Prefix == "" {
			continue
		}
		prefixes[r.Prefix] = true
		if r.Prefix != r.Plural && r.Prefix != "controllers" { // which is a word of many other texts
			odd[r.Prefix] = true
		}
	}
	files := 0
	for _, f := range sources(t) {
		if f.test || !within(f.pkg, "internal/feature") && !within(f.pkg, "internal/workload") {
			continue
		}
		files++
		for _, text := range literals(f.tree) {
			if odd[text] {
				t.Errorf("%s: take %q from kinds/ref", f.path, text)
			}
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			lit, isLit := call.Args[0].(*ast.BasicLit)
			if !ok || !isLit || method.Sel.Name != "Collection" || lit.Kind != token.STRING {
				return true
			}
			if text, _ := strconv.Unquote(lit.Value); prefixes[text] {
				t.Errorf("%s: take %q from kinds/ref", positions.Position(call.Pos()), text)
			}
			return true
		})
	}
	if files < 100 {
		t.Fatalf("only %d files found: the rule would hold for nothing", files)
	}
}
