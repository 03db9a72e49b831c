package lint

import (
	"go/ast"
	"strings"
	"testing"
)

// quantities is the package that measures texts before it parses them, and compares without writing digits out.
const quantities = "internal/object/quantity"

// TestQuantitiesAreMeasured finds quantities that are parsed or compared by the library, which bounds neither.
func TestQuantitiesAreMeasured(t *testing.T) {
	calls := 0
	for _, f := range sources(t) {
		if f.test || f.pkg == quantities || strings.HasPrefix(f.pkg, "internal/testing") {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, _ := fun.X.(*ast.Ident)
			switch name := fun.Sel.Name; {
			case of != nil && of.Name == "quantity":
				calls++
			case of != nil && of.Name == "resource" && name == "ParseQuantity":
				t.Errorf("%s: use quantity.Parse: resource.ParseQuantity has no bound", f.path)
			case of != nil && of.Name == "resource" && name == "MustParse":
				if _, constant := call.Args[0].(*ast.BasicLit); !constant {
					t.Errorf("%s: resource.MustParse of a text that is no constant", f.path)
				}
			case name == "Cmp" || name == "CmpInt64":
				t.Errorf("%s: use quantity.Cmp: the method %s writes out all digits", f.path, name)
			}
			return true
		})
	}
	if calls < 20 {
		t.Errorf("only %d calls of package quantity found", calls)
	}
}
