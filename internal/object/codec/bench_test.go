package codec

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"
)

// largeObject is the 3 KB object of the load generator.
func largeObject() []byte {
	var items []string
	for k := range 30 {
		items = append(items, fmt.Sprintf(`{"name":"item-%03d","value":"%032d"}`, k, k))
	}
	return []byte(
		`{"apiVersion":"bench.example.com/v1","kind":"Widget","metadata":{"name":"w-000001","labels":{"app":"bench","shard":"s1"}},"spec":{"bucket":"b01","counter":12,"items":[` + strings.Join(items, ",") + `]}}`)
}

func BenchmarkDecode(b *testing.B) {
	doc := largeObject()
	b.Run("codec", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := DecodeJSON(doc); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			var v any
			if err := kjson.UnmarshalCaseSensitivePreserveInts(doc, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	doc := largeObject()
	v, err := DecodeJSON(doc)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("codec", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf = AppendJSON(buf[:0], v)
		}
	})
	b.Run("library", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(v); err != nil {
				b.Fatal(err)
			}
		}
	})
}
