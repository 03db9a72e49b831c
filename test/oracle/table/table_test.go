package table

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/table"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// TestTableconvertor prints random objects with random columns through both sides.
func TestTableconvertor(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5000) {
		compare(t, seed)
		if t.Failed() {
			return
		}
	}
}

func FuzzTableconvertor(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(compare)
}

func compare(t *testing.T, seed uint64) {
	g := generator{rand.New(rand.NewPCG(seed, 0)), time.Now()}
	columns := g.columns()
	theirs, _ := tableconvertor.New(columns)

	v := &catalog.Version{Name: "v1"}
	for _, c := range columns {
		v.Columns = append(v.Columns,
			catalog.Column{
				Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Priority: c.Priority,
				JSONPath: c.JSONPath,
			})
	}
	r := &catalog.Resource{Group: "g", Plural: "ks", Kind: "K", Versions: []*catalog.Version{v}, Storage: v}

	for range 4 {
		obj := g.object()
		doc := codec.AppendJSON(nil, obj)
		want, err := theirs.ConvertToTable(t.Context(), &unstructured.Unstructured{Object: obj}, &metav1.TableOptions{})
		if err != nil {
			t.Fatal(err)
		}
		data, err := table.Single(r, v, table.Row{JSON: doc},
			table.Options{Env: catalog.Env{Now: g.now}, IncludeObject: metav1.IncludeNone})
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, doc)
		}
		var got metav1.Table
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, data)
		}
		if !reflect.DeepEqual(got.ColumnDefinitions, want.ColumnDefinitions) {
			t.Errorf("seed %d: definitions\ngot  %+v\nwant %+v", seed, got.ColumnDefinitions, want.ColumnDefinitions)
		}
		if !reflect.DeepEqual(got.ListMeta, want.ListMeta) {
			t.Errorf("seed %d: list metadata\ngot  %+v\nwant %+v", seed, got.ListMeta, want.ListMeta)
		}
		gotCells, wantCells := mustJSON(t, got.Rows[0].Cells), mustJSON(t, want.Rows[0].Cells)
		if gotCells != wantCells {
			paths := ""
			for _, c := range columns {
				paths += fmt.Sprintf("\n%s %s", c.Type, c.JSONPath)
			}
			t.Errorf("seed %d: cells\ngot  %s\nwant %s\nobject %s\ncolumns %s", seed, gotCells, wantCells, doc, paths)
		}
	}
}

// mustJSON encodes cells twice over, so that an int64 of theirs equals a float64 of ours.
func mustJSON(t *testing.T, cells []any) string {
	data, err := json.Marshal(cells)
	if err != nil {
		t.Fatal(err)
	}
	var generic []any
	if err := json.Unmarshal(data, &generic); err != nil {
		t.Fatal(err)
	}
	data, err = json.Marshal(generic)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

type generator struct {
	*rand.Rand
	now time.Time
}

// columns returns printer columns, some with invalid paths.
func (g generator) columns() []apiextensionsv1.CustomResourceColumnDefinition {
	var out []apiextensionsv1.CustomResourceColumnDefinition
	for i := range 1 + g.IntN(5) {
		c := apiextensionsv1.CustomResourceColumnDefinition{
			Name:     fmt.Sprintf("C%d", i),
			Type:     pick(g, "string", "string", "integer", "number", "boolean", "date"),
			Priority: int32(g.IntN(2)),
			JSONPath: g.path(),
		}
		if g.IntN(2) == 0 {
			c.Format = pick(g, "int32", "date-time", "byte")
		}
		if g.IntN(2) == 0 {
			c.Description = "described <here> & \"there\""
		}
		out = append(out, c)
	}
	return out
}

func (g generator) path() string {
	if g.IntN(20) == 0 {
		// No wildcard or descent over maps: the library returns them in random order.
		return pick(g, ".a[", ".", "a", "$.a", ".a}x{.b", ".a[?(@.b)]", ".a[*]", `.l[?(@.a=="x")].b`, ".metadata",
			".metadata.labels", `.l[?(@.a>1)].b`, `.l[?(@.b!="x")].a`, ".l[0,1].a", ".l[0:1].a", ".l[::2].a", ".l['a']",
			`."a"`, ".a b", "{.a", ".a}")
	}
	path := ""
	for range 1 + g.IntN(3) {
		path += "." + g.name()
		switch g.IntN(8) {
		case 0:
			path += fmt.Sprintf("[%d]", g.IntN(4)-1)
		case 1:
			path += "['" + g.name() + "']"
		}
	}
	return path
}

func (g generator) name() string {
	return pick(g, "a", "b", "l", "l", "metadata", "name", "labels", "creationTimestamp", `x\.y`, "é", "q<r")
}

// object returns an object with a name, in which the names of paths occur often.
func (g generator) object() map[string]any {
	obj := map[string]any{"apiVersion": "g/v1", "kind": "K"}
	for range g.IntN(5) {
		obj[pick(g, "a", "b", "l", "x.y", "é", "q<r")] = g.value(3)
	}
	meta := map[string]any{"name": pick(g, "n", "a.b-c"), "creationTimestamp": g.timestamp()}
	if g.IntN(3) > 0 {
		meta["resourceVersion"] = fmt.Sprint(g.IntN(1000))
	}
	if g.IntN(2) == 0 {
		meta["labels"] = map[string]any{"a": "x", "x.y": "z"}
	}
	obj["metadata"] = meta
	return obj
}

func (g generator) value(depth int) any {
	switch n := g.IntN(12); {
	case n < 2 && depth > 0:
		m := map[string]any{}
		for range g.IntN(4) {
			m[pick(g, "a", "b", "l", "name", "x.y", "é", "q<r")] = g.value(depth - 1)
		}
		return m
	case n < 5 && depth > 0:
		l := []any{}
		for range g.IntN(4) {
			l = append(l, g.value(depth-1))
		}
		return l
	case n == 5:
		return nil
	case n == 6:
		return g.IntN(2) == 0
	case n == 7:
		return int64(g.IntN(2000) - 1000)
	case n == 8:
		return pick(g, 0.5, -1.25, 1e21, 1e-9, 3.0, 123456789.5)
	case n == 9:
		return g.timestamp()
	}
	return pick(g, "", "x", "y", "<a&b>", "null", "\"q\"", "two\nlines", "é\u2028\u0001", "2020", "true", "5")
}

// timestamp returns a time with an age that prints the same for hours.
func (g generator) timestamp() string {
	ages := []time.Duration{12 * 24 * time.Hour, 300 * 24 * time.Hour, 1500 * 24 * time.Hour, -40 * 24 * time.Hour}
	return g.now.Add(-ages[g.IntN(len(ages))] - 12*time.Hour).UTC().Format(time.RFC3339)
}

func pick[T any](g generator, of ...T) T { return of[g.IntN(len(of))] }
