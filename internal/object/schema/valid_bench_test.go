package schema

import (
	"fmt"
	"strings"
	"testing"
)

// benchSchema resembles an operator's kind: names with patterns, lists of maps, quantities, a choice.
const benchSchema = `{"type":"object","properties":{"spec":{"type":"object","required":["replicas"],"properties":{
	"replicas":{"type":"integer","minimum":0},"image":{"type":"string","maxLength":253},
	"name":{"type":"string","pattern":"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
	"limits":{"type":"object","additionalProperties":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}],"pattern":"^[0-9]+(m|Mi|Gi)?$"}},
	"items":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],
		"properties":{"name":{"type":"string"},"port":{"type":"integer","maximum":65535},"args":{"type":"array","items":{"type":"string"}},
		"mode":{"type":"string","enum":["a","b","c"]}}}}}}}}`

func benchObject(items int) string {
	var b strings.Builder
	b.WriteString(
		`{"spec":{"replicas":3,"image":"registry.example.com/team/app:v1","name":"web-frontend","limits":{"cpu":"250m","memory":"64Mi","x":3},"items":[`)
	for i := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"item-%d","port":%d,"mode":"b","args":["--verbose","--level=3","x"]}`, i, 1000+i)
	}
	b.WriteString(`]}}`)
	return b.String()
}

// BenchmarkValidate validates valid objects of 1 KiB and 100 KiB.
func BenchmarkValidate(b *testing.B) {
	s := compileJSON(b, benchSchema, Options{})
	for _, items := range []int{10, 1000} {
		text := benchObject(items)
		obj := parse(b, text)
		b.Run(fmt.Sprintf("%dKiB", (len(text)+1023)/1024), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if errs := s.Validate(obj, nil); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
	}
}
