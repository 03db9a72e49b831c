// Package servetest sends requests to a handler without a network, and reads its responses.
package servetest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Do sends a request with the header "Test-User: root"; headers are "Key: value".
func Do(to http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Header.Set("Test-User", "root")
	for _, h := range headers {
		key, value, _ := strings.Cut(h, ": ")
		r.Header.Set(key, value)
	}
	w := httptest.NewRecorder()
	to.ServeHTTP(w, r)
	return w
}

// Status returns the Status of a response, which must be one.
func Status(t testing.TB, w *httptest.ResponseRecorder) *metav1.Status {
	t.Helper()
	var s metav1.Status
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || s.Kind != "Status" || int(s.Code) != w.Code {
		t.Fatalf("answer %d %q is no Status: %v", w.Code, w.Body, err)
	}
	return &s
}
