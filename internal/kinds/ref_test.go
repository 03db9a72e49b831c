package kinds_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/feature/aggregation"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/part"
)

// TestRefs compares the table of package ref with the kinds' definitions. It reads the table from its source, so that
// a new line is compared too.
func TestRefs(t *testing.T) {
	want := map[string]ref.Names{}
	all := kinds.Resources()
	all = aggregation.Part(aggregation.Settings{}).Resources(&part.Host{}, all)
	for _, r := range all {
		if r.Group != "events.k8s.io" { // an alias of the core group's events
			want[r.Kind] = ref.Names{
				Group: r.Group, Version: r.Versions[0].Name, Resource: r.Plural, Kind: r.Kind, Prefix: r.Prefix,
			}
		}
	}
	tree, err := parser.ParseFile(token.NewFileSet(), "ref/ref.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	ast.Inspect(tree, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		var f [5]string
		for i, e := range spec.Values[0].(*ast.CompositeLit).Elts {
			if f[i], err = strconv.Unquote(e.(*ast.BasicLit).Value); err != nil {
				t.Fatal(err)
			}
		}
		count++
		got := ref.Names{Group: f[0], Version: f[1], Resource: f[2], Kind: f[3], Prefix: f[4]}
		if got != want[got.Kind] {
			t.Errorf("%s is %+v, but the kind is %+v", spec.Names[0], got, want[got.Kind])
		}
		if name := spec.Names[0].Name; !strings.EqualFold(name, got.Resource) {
			t.Errorf("%s names the resource %s", name, got.Resource)
		}
		return true
	})
	if count < 40 {
		t.Errorf("only %d kinds found in ref.go", count)
	}
}
