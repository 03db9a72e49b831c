package table_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/table"
)

// TestHostilePaths prints objects with columns that have more results than fit into memory. Such cells are empty; the
// test ends soon, or fails at the package's time limit.
func TestHostilePaths(t *testing.T) {
	t.Parallel()
	const depth = 60
	deep := strings.Repeat(`{"a":`, depth) + `{"b":"found"}` + strings.Repeat(`}`, depth)
	flat := `[` + strings.Repeat(`{"b":"found"},`, 20000) + `{"b":"found"}]`
	for _, c := range []struct{ spec, path, want string }{
		{deep, "..b", `"found"`},
		{deep, "..a..b", `"found"`},
		{deep, "..a..a..b", `"found"`},
		{deep, "..a..a..a..a..a..a..b", "null"},
		{deep, strings.Repeat("..", 3) + "b", "null"}, // an invalid path: six dots
		{deep, strings.Repeat("..a", 5000), "null"},
		{deep, ".spec" + strings.Repeat("['a','a']", 40), "null"},
		{deep, ".spec['a','x'].a.x", "null"},
		{deep, `.spec` + strings.Repeat(".a", depth) + `['b','b']`, `"found"`},
		{flat, "..b", `"found"`},
		{flat, "..spec..b", `"found"`},
		{flat, ".spec[*].b", `"found"`},
		{flat, strings.Repeat(".spec[?(@..b==\"x\")]", 1), "null"},
		{`"` + strings.Repeat("x", 1<<20) + `"`, "..spec..spec..spec..nothing", "null"},
	} {
		doc := `{"metadata":{"name":"n"},"spec":` + c.spec + `}`
		r, v := custom(catalog.Column{Name: "C", Type: "string", JSONPath: c.path})
		out, err := table.Single(r, v, table.Row{JSON: []byte(doc)},
			table.Options{Env: env, IncludeObject: metav1.IncludeNone})
		if err != nil {
			t.Fatal(err)
		}
		if want := `"cells":["n",` + c.want + `]`; !strings.Contains(string(out), want) && len(definitions(out)) > 1 {
			t.Errorf("%.40s: %.200s, want %s", c.path, out[max(0, len(out)-200):], want)
		}
	}
}

// definitions returns the parts of a table's column definitions.
func definitions(doc []byte) []string { return strings.Split(string(doc), `"format":`)[1:] }

// TestManyHostileColumns checks that all cells of a row share one allowance.
func TestManyHostileColumns(t *testing.T) {
	t.Parallel()
	var columns []catalog.Column
	for i := range 500 {
		columns = append(columns, catalog.Column{Name: fmt.Sprint("C", i), Type: "string", JSONPath: "..a..a..b"})
	}
	const depth = 100
	doc := `{"metadata":{"name":"n"},"spec":` + strings.Repeat(`{"a":`, depth) + `{"b":"found"}` +
		strings.Repeat(`}`, depth) + `}`
	r, v := custom(columns...)
	out, err := table.Single(r, v, table.Row{JSON: []byte(doc)},
		table.Options{Env: env, IncludeObject: metav1.IncludeNone})
	if err != nil {
		t.Fatal(err)
	}
	if found := strings.Count(string(out), `"found"`); found == 0 || found == len(columns) {
		t.Errorf("%d cells of %d are filled", found, len(columns))
	}
}

// TestTableEnds: rows are not printed once the time for them is over.
func TestTableEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, v := custom()
	w := table.New(r, v, table.Options{Env: env})
	if out, err := w.AppendRow(ctx, []byte("x"), table.Row{JSON: []byte(object)}); !errors.Is(err, context.Canceled) ||
		string(out) != "x" {
		t.Errorf("%s, %v", out, err)
	}
}
