package table_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/table"
)

// BenchmarkList prints 1,000 objects of 5 KB, with plain paths (read from the bytes) and with one path that needs the
// objects decoded.
func BenchmarkList(b *testing.B) {
	plain := []catalog.Column{
		{Name: "Ready", Type: "string", JSONPath: ".status.phase"},
		{Name: "Secret", Type: "string", JSONPath: ".spec.secretName"},
		{Name: "Replicas", Type: "integer", JSONPath: ".status.replicas"},
		{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
	}
	filter := append([]catalog.Column{
		{Name: "Cond", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`},
	}, plain...)
	var env strings.Builder
	for i := range 60 {
		fmt.Fprintf(&env, `{"name":"VARIABLE_%d","value":"some value of a variable with a number %d"},`, i, i)
	}
	doc := []byte(
		`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"creationTimestamp":"2026-03-02T05:01:07Z","labels":{"app":"thing","tier":"back"},"name":"thing-1","namespace":"default","resourceVersion":"7","uid":"0c7e6d0e-5f1c-4a52-93a3-4a1c5d6f7e8f"},` +
			`"spec":{"env":[` + strings.TrimSuffix(env.String(), ",") +
			`],"secretName":"s"},"status":{"conditions":[{"status":"False","type":"Issuing"},{"status":"True","type":"Ready"}],"phase":"Running","replicas":3}}`)
	rows := make([]table.Row, 1000)
	for i := range rows {
		rows[i].JSON = doc
	}
	for name, columns := range map[string][]catalog.Column{"plain": plain, "filter": filter} {
		b.Run(name, func(b *testing.B) {
			r, v := custom(columns...)
			b.ReportAllocs()
			b.SetBytes(int64(len(doc) * len(rows)))
			for b.Loop() {
				if _, err := table.Build(r, v, rows, table.Options{}, metav1.ListMeta{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
