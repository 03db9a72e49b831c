package lint

import (
	"go/ast"
	"slices"
	"testing"
)

// unboundedResponses are the files that read a response to its end without a bound, and the reasons.
var unboundedResponses = map[string]string{
	"internal/auth/token/keysets.go":              "its transport is foreign.Document",
	"internal/feature/extension/behind/follow.go": "the lists of the API server in front, which decides about this server's users",
	"internal/testing/script/script.go":           "a test reads the response of its own server",
	"test/load/bare/main.go":                      "a benchmark reads the response of its own server",
}

// TestResponses checks that no code reads the response of another program to its end without a bound, as the readers of
// internal/net/foreign and io.LimitReader have one.
func TestResponses(t *testing.T) {
	used := map[string]bool{}
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if !readsResponse(n) {
				return true
			}
			if used[f.path] = true; unboundedResponses[f.path] == "" {
				t.Errorf("%s: a response is read without a bound: use foreign.ReadAll or foreign.Reader",
					positions.Position(n.Pos()))
			}
			return true
		})
	}
	for path := range unboundedResponses {
		if !used[path] {
			t.Errorf("%s reads no response without a bound: delete it from unboundedResponses", path)
		}
	}
}

// readsResponse reports whether a node is a call such as io.ReadAll(resp.Body). Bodies of requests have other names.
func readsResponse(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	reader, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"ReadAll", "NewDecoder", "NewScanner", "NewReader"}, reader.Sel.Name) {
		return false
	}
	if x, ok := reader.X.(*ast.Ident); ok && x.Name == "foreign" {
		return false
	}
	body, ok := call.Args[0].(*ast.SelectorExpr)
	if !ok || body.Sel.Name != "Body" {
		return false
	}
	of, ok := body.X.(*ast.Ident)
	return ok && !slices.Contains([]string{"r", "req"}, of.Name)
}
