package charge

import (
	"strings"
	"testing"
)

// BenchmarkBody is what an ordinary write pays: an object of 1 KiB is weighed and its account opened and closed.
func BenchmarkBody(b *testing.B) {
	body := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"i":"0","x":"` +
		strings.Repeat("x", 900) + `"}}`)
	l, u := New(0), named("alice")
	b.ReportAllocs()
	for b.Loop() {
		var a Account
		a.Open(l, u)
		if err := a.Body(len(body), JSON(body)); err != nil {
			b.Fatal(err)
		}
		a.Close()
	}
}
