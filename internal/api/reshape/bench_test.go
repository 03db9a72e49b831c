package reshape

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

const benchSchemas = `
v1:
  type: object
  properties:
    spec: &spec
      type: object
      properties:
        hostPort: {type: string}
        bucket: {type: string}
        mode: {type: string}
        timeoutSeconds: {type: integer}
        size: {type: integer}
        items: &items {type: array, items: {type: object, properties: {name: {type: string}, text: {type: string}}}}
v2:
  type: object
  properties:
    spec:
      type: object
      properties:
        host: {type: string}
        port: {type: integer}
        buckets: {type: array, items: {type: string}}
        mode: {type: string}
        timeout: {type: string}
        replicas: {type: integer}
        items: *items
`

const benchRules = `
steps:
- from: v1
  to: v2
  rules:
  - {split: spec.hostPort, to: [spec.host, spec.port], separator: ":"}
  - {wrap: spec.bucket, to: spec.buckets}
  - {enum: spec.mode, values: {Always: always, Never: never}}
  - {duration: spec.timeoutSeconds, to: spec.timeout, unit: s}
  - {move: spec.size, to: spec.replicas}
`

// benchObject has about 5 KB.
func benchObject(t testing.TB) object.Object {
	obj := decode(t, `{apiVersion: example.com/v1, kind: Thing, metadata: {name: a, labels: {app: x}}, spec: {
		hostPort: "example.com:8080", bucket: b, mode: Always, timeoutSeconds: 90, size: 3}}`)
	var items []any
	for i := range 40 {
		items = append(items, object.Object{"name": fmt.Sprint("item", i), "text": strings.Repeat("text ", 18)})
	}
	object.Map(obj, "spec")["items"] = items
	return obj
}

// BenchmarkConvert converts an object of 5 KB by five rules, there and back: two conversions.
func BenchmarkConvert(b *testing.B) {
	p := plan(b, schemas(b, benchSchemas), benchRules)
	obj := benchObject(b)
	b.ReportMetric(float64(len(codec.AppendJSON(nil, obj))), "object-bytes")
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Convert(obj, "v1", "v2"); err != nil {
			b.Fatal(err)
		}
		if err := p.Convert(obj, "v2", "v1"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecode is the decoding and encoding that each conversion needs besides.
func BenchmarkDecode(b *testing.B) {
	raw := codec.AppendJSON(nil, benchObject(b))
	b.ReportAllocs()
	for b.Loop() {
		v, err := codec.DecodeJSON(raw)
		if err != nil {
			b.Fatal(err)
		}
		_ = codec.AppendJSON(nil, v)
	}
}
