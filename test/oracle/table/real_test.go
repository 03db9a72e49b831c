package table

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/table"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// TestRealColumns prints an object with a value at each column's path, for the definitions of well-known projects.
func TestRealColumns(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../../shared/crds/real/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no definitions beside the checkout")
	}
	now := time.Now()
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range strings.Split(string(data), "\n---\n") {
			var def apiextensionsv1.CustomResourceDefinition
			if err := yaml.Unmarshal([]byte(doc), &def); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, v := range def.Spec.Versions {
				printReal(t, def.Name+" "+v.Name, v.AdditionalPrinterColumns, now)
			}
		}
	}
}

func printReal(t *testing.T, name string, columns []apiextensionsv1.CustomResourceColumnDefinition, now time.Time) {
	if len(columns) == 0 {
		return
	}
	theirs, err := tableconvertor.New(columns)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	obj := map[string]any{
		"apiVersion": "g/v1", "kind": "K",
		"metadata": map[string]any{
			"name": "n", "creationTimestamp": now.Add(-300 * time.Hour).UTC().Format(time.RFC3339),
		},
	}
	v := &catalog.Version{Name: "v1"}
	for _, c := range columns {
		v.Columns = append(v.Columns,
			catalog.Column{
				Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Priority: c.Priority,
				JSONPath: c.JSONPath,
			})
		fill(obj, c)
	}
	r := &catalog.Resource{Group: "g", Plural: "ks", Kind: "K", Versions: []*catalog.Version{v}, Storage: v}
	if !reflect.DeepEqual(table.Definitions(r, v)[1:], definitionsOf(t, theirs)[1:]) {
		t.Errorf("%s: definitions differ", name)
	}
	want, err := theirs.ConvertToTable(t.Context(), &unstructured.Unstructured{Object: obj}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := table.Single(r, v, table.Row{JSON: codec.AppendJSON(nil, obj)},
		table.Options{Env: catalog.Env{Now: now}})
	if err != nil {
		t.Fatal(err)
	}
	var ours metav1.Table
	if err := yaml.Unmarshal(got, &ours); err != nil {
		t.Fatal(err)
	}
	if g, w := mustJSON(t, ours.Rows[0].Cells), mustJSON(t, want.Rows[0].Cells); g != w {
		t.Errorf("%s:\ngot  %s\nwant %s", name, g, w)
	}
}

func definitionsOf(t *testing.T, c rest.TableConvertor) []metav1.TableColumnDefinition {
	t.Helper()
	out, err := c.ConvertToTable(t.Context(), &unstructured.Unstructured{Object: map[string]any{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out.ColumnDefinitions
}

// fill sets a value at a column's path: at the end of plain names, or in a list of conditions at a filter.
func fill(obj map[string]any, c apiextensionsv1.CustomResourceColumnDefinition) {
	path, filter, filtered := strings.Cut(strings.TrimPrefix(c.JSONPath, "."), "[")
	names := strings.Split(path, ".")
	at := obj
	for _, n := range names[:len(names)-1] {
		below, ok := at[n].(map[string]any)
		if !ok {
			below = map[string]any{}
			at[n] = below
		}
		at = below
	}
	last := names[len(names)-1]
	switch {
	case at[last] != nil && !filtered:
	case filtered:
		list, _ := at[last].([]any)
		condition := map[string]any{"status": "True", "reason": "Because", "message": filter}
		if _, rest, ok := strings.Cut(filter, `"`); ok {
			condition["type"], _, _ = strings.Cut(rest, `"`)
		} else if _, rest, ok := strings.Cut(filter, `'`); ok {
			condition["type"], _, _ = strings.Cut(rest, `'`)
		}
		at[last] = append(list, condition)
	case c.Type == "integer":
		at[last] = int64(7)
	case c.Type == "boolean":
		at[last] = true
	case c.Type == "date":
		at[last] = "2001-01-01T00:00:00Z"
	default:
		at[last] = "some " + last
	}
}
