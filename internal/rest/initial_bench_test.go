package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/request"
)

// nowhere is an http.ResponseWriter that discards its input.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header       { return n.header }
func (nowhere) WriteHeader(int)             {}
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Flush()                      {}

// BenchmarkInitialEvents starts watches of 1,000 objects of 1 KiB, which end at once.
func BenchmarkInitialEvents(b *testing.B) {
	s := start(b)
	for i := range 1000 {
		body := fmt.Sprintf(`{"metadata":{"name":"m-%d"},"data":{"x":%q}}`, i, strings.Repeat("x", 900))
		r := httptest.NewRequest(http.MethodPost, "/api/v1/namespaces/default/configmaps", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		info, _ := request.Parse(r)
		s.ServeHTTP(httptest.NewRecorder(), r, info, admin)
	}
	r := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/default/configmaps", nil)
	info, _ := request.Parse(r)
	s.ServeHTTP(httptest.NewRecorder(), r, info, admin) // waits until the view has the objects
	over, cancel := context.WithCancel(b.Context())
	cancel()
	for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		b.Run(accept, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodGet,
					"/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=0", nil)
				r.Header.Set("Accept", accept)
				info, _ := request.Parse(r)
				s.ServeHTTP(nowhere{http.Header{}}, r.WithContext(over), info, admin)
			}
		})
	}
}
