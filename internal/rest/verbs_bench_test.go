package rest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/request"
)

// BenchmarkVerbs measures one request of each verb to a ConfigMap, without package front; create and update include a
// write to the memory backend.
func BenchmarkVerbs(b *testing.B) {
	s := start(b)
	do := func(b *testing.B, method, path, contentType, body string) {
		r := httptest.NewRequest(method, "/api/v1/namespaces/default/configmaps"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		info, err := request.Parse(r)
		if err != nil {
			b.Fatal(err)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r, info, admin)
		if w.Code/100 != 2 {
			b.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
	}
	object := func(name string, i int) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"i":"%d","x":%q}}`,
			name, i,
			strings.Repeat("x", 900))
	}
	n := 0
	do(b, http.MethodPost, "", "application/json", object("one", 0))
	for _, c := range []struct {
		name string
		do   func(b *testing.B)
	}{
		{"create",
			func(b *testing.B) { do(b, http.MethodPost, "", "application/json", object(fmt.Sprint("n-", n), n)) }},
		{"get", func(b *testing.B) { do(b, http.MethodGet, "/one?resourceVersion=0", "", "") }},
		{"list",
			func(b *testing.B) {
				do(b, http.MethodGet, "?resourceVersion=0&fieldSelector=metadata.name%3Done", "", "")
			}},
		{"update", func(b *testing.B) { do(b, http.MethodPut, "/one", "application/json", object("one", n)) }},
		{"patch", func(b *testing.B) {
			do(b, http.MethodPatch, "/one", "application/merge-patch+json", fmt.Sprintf(`{"data":{"i":"%d"}}`, n))
		}},
		{"apply", func(b *testing.B) {
			do(b, http.MethodPatch, "/two?fieldManager=me", "application/apply-patch+yaml", object("two", n))
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n++
				c.do(b)
			}
		})
	}
}
