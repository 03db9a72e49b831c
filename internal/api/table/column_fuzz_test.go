package table_test

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/table"
)

// FuzzColumn checks rows with the path of a definition's author and a client's object. Whatever they are, a row is JSON
// that decodes as a Table, or an error.
func FuzzColumn(f *testing.F) {
	for _, path := range []string{".spec.replicas", `.metadata.labels['a\.b']`, ".spec.list[0:2:1].type",
		`.spec.list[?(@.type=="b")].v`, "..type",
		"..", "..*", ".spec.list[-9]", "{range .spec.list[*]}{.v}{end}", `}{"x"}{.spec`, ".spec.list[?(@.v>1)]", ".[",
		"\x00"} {
		f.Add("string", path, object)
		f.Add("date", path, object)
	}
	f.Add("integer", ".spec", `{"spec":1e400}`)
	f.Fuzz(func(t *testing.T, typ, path, obj string) {
		var decoded map[string]any
		if json.Unmarshal([]byte(obj), &decoded) != nil || decoded == nil {
			t.Skip()
		}
		r, v := custom(catalog.Column{Name: "C", Type: typ, JSONPath: path})
		out, err := table.Single(r, v, table.Row{JSON: []byte(obj)}, table.Options{Version: "v1", Env: env})
		if err != nil {
			return
		}
		var got metav1.Table
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if len(got.Rows) != 1 {
			t.Fatalf("%d rows\n%s", len(got.Rows), out)
		}
	})
}
