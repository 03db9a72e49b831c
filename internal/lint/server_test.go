package lint

import (
	"go/ast"
	"testing"
)

// Every HTTP server ends connections that send no request, and bounds the headers that it reads. The functions of
// net/http that make a server without such bounds are not called.
func TestServersAreBounded(t *testing.T) {
	servers := 0
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if !ofHTTP(n.Type, "Server") {
					return true
				}
				servers++
				set := map[string]bool{}
				for _, element := range n.Elts {
					if pair, ok := element.(*ast.KeyValueExpr); ok {
						if key, ok := pair.Key.(*ast.Ident); ok {
							set[key.Name] = true
						}
					}
				}
				for _, bound := range []string{"ReadHeaderTimeout", "IdleTimeout", "MaxHeaderBytes"} {
					if !set[bound] {
						t.Errorf("%s: an http.Server without %s", positions.Position(n.Pos()), bound)
					}
				}
			case *ast.CallExpr:
				for _, name := range []string{"ListenAndServe", "ListenAndServeTLS", "Serve", "ServeTLS"} {
					if ofHTTP(n.Fun, name) {
						t.Errorf("%s: http.%s serves without bounds: make an http.Server", positions.Position(n.Pos()), name)
					}
				}
			}
			return true
		})
	}
	if servers < 4 {
		t.Errorf("only %d servers found: the rule would hold for nothing", servers)
	}
}

// ofHTTP reports whether an expression is a name of package http.
func ofHTTP(e ast.Expr, name string) bool {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	pkg, ok := selector.X.(*ast.Ident)
	return ok && pkg.Name == "http"
}
