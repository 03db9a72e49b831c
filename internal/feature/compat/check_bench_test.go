package compat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// benchDefinition returns a definition with a limit for a number, and a CEL rule.
func benchDefinition(b *testing.B, maximum int64) object.Object {
	b.Helper()
	text := object.Object{"type": "string"}
	return object.Object{
		"metadata": object.Object{"name": "ships.example.com"},
		"spec": object.Object{
			"group": "example.com", "scope": "Namespaced", "names": object.Object{"kind": "Ship", "plural": "ships"},
			"versions": []any{object.Object{
				"name": "v1", "served": true, "storage": true, "schema": object.Object{"openAPIV3Schema": object.Object{
					"type": "object", "properties": object.Object{"spec": object.Object{
						"type": "object", "properties": object.Object{
							"crew": object.Object{"type": "integer", "maximum": maximum},
							"items": object.Object{"type": "array", "maxItems": int64(100), "items": object.Object{
								"type": "object", "properties": object.Object{"name": text, "text": text},
							}},
						},
						"x-kubernetes-validations": []any{object.Object{"rule": "!has(self.crew) || self.crew >= 0"}},
					}},
				}},
			}},
		},
	}
}

// BenchmarkObjects decodes and checks an object of 5 KB, as the server does for each stored object.
func BenchmarkObjects(b *testing.B) {
	was, err := crd.Decode(benchDefinition(b, 100))
	if err != nil {
		b.Fatal(err)
	}
	is, err := crd.Decode(benchDefinition(b, 50))
	if err != nil {
		b.Fatal(err)
	}
	var items []any
	for i := range 40 {
		items = append(items, object.Object{"name": fmt.Sprint("item", i), "text": strings.Repeat("text ", 18)})
	}
	raw := codec.AppendJSON(nil, object.Object{
		"apiVersion": "example.com/v1", "kind": "Ship", "metadata": object.Object{"name": "a", "namespace": "default"},
		"spec": object.Object{"crew": int64(3), "items": items},
	})
	checks := NewObjects(was, is)
	if len(checks) != 1 {
		b.Fatalf("%d checks", len(checks))
	}
	b.ReportMetric(float64(len(raw)), "object-bytes")
	b.ReportAllocs()
	for b.Loop() {
		v, err := codec.DecodeJSON(raw)
		if err != nil {
			b.Fatal(err)
		}
		if err := checks[0].Check("default", "a", v.(object.Object)); err != nil {
			b.Fatal(err)
		}
	}
	if found := checks[0].Findings(); len(found) > 0 {
		b.Fatal(found)
	}
}
