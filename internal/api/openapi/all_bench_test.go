package openapi

import (
	"net/http/httptest"
	"testing"
)

// BenchmarkV3All reads every document of the definitions once, from a handler that holds none.
func BenchmarkV3All(b *testing.B) {
	c := real(b, "*.yaml")
	snap := c.Snapshot()
	b.ReportAllocs()
	for b.Loop() {
		h, documents, size := handler(), 0, 0
		for _, g := range snap.Groups() {
			for _, gv := range g.Versions {
				r := httptest.NewRequest("GET", "/openapi/v3/"+indexPath(g, gv), nil)
				r.Header.Set("Accept-Encoding", "gzip")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r, snap)
				documents, size = documents+1, size+w.Body.Len()
			}
		}
		b.ReportMetric(float64(documents), "documents")
		b.ReportMetric(float64(size), "bytes")
	}
}
