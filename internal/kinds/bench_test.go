package kinds_test

import (
	"fmt"
	"testing"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

// BenchmarkDecode reads a config map of 5 KB in 50 keys, and one of 5 KB in one.
func BenchmarkDecode(b *testing.B) {
	for _, keys := range []int{1, 50} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			data := map[string]any{}
			for i := range keys {
				data[fmt.Sprintf("key-%d", i)] = fmt.Sprintf("%0*d", 5000/keys, i)
			}
			obj := map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"name": "a", "namespace": "b", "labels": map[string]any{"app": "x"}},
				"data":     data,
			}
			rules := kinds.Resources()[1].Strategy
			b.ReportAllocs()
			for b.Loop() {
				if _, err := rules.Decode(obj); err != nil {
					b.Fatal(err)
				}
				rules.Validate(obj)
			}
		})
	}
}

// BenchmarkSchema makes the schema of the kind with the largest one: what its first request pays.
func BenchmarkSchema(b *testing.B) {
	for b.Loop() {
		for _, r := range kinds.Resources() {
			if r.Kind == "CustomResourceDefinition" {
				if _, err := r.Storage.Schema(); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}

// BenchmarkResources is what starting the server pays.
func BenchmarkResources(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		kinds.Resources()
	}
}
