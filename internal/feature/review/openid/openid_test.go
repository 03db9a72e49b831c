package openid

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/request"
)

// TestDocument sends the requests of a recording of kube-apiserver.
func TestDocument(t *testing.T) {
	t.Parallel()
	const keySet = "application/jwk-set+json"
	for _, tc := range []struct {
		method, path, accept, contentType string
		code                              int
		body                              string
	}{
		{"GET", serviceaccount.KeysPath, "", keySet, 200, "keys"},
		{"GET", serviceaccount.KeysPath + "/", "*/*", keySet, 200, "keys"},
		{"GET", serviceaccount.ConfigurationPath + "/", "", keySet, 200, "keys"},
		{"GET", serviceaccount.KeysPath + "/x", "", "application/json", 404, "could not find the requested resource"},
		{"GET", serviceaccount.KeysPath, "text/html, " + keySet + ";q=0.5", keySet, 200, "keys"},
		{"GET", serviceaccount.KeysPath, "application/json", "application/json", 406,
			`406: Not Acceptable\n\nAvailable representations: application/jwk-set+json`},
		{"HEAD", serviceaccount.KeysPath, "", "application/json", 405, ""},
		{"POST", serviceaccount.KeysPath, "", "application/json", 405, "does not allow this method"},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(tc.method, tc.path, nil)
		if tc.accept != "" {
			r.Header.Set("Accept", tc.accept)
		}
		document(keySet, func() []byte { return []byte("keys") })(w, r, &request.Info{Path: tc.path}, nil)
		if w.Code != tc.code || w.Header().Get("Content-Type") != tc.contentType ||
			!strings.Contains(w.Body.String(), tc.body) {
			t.Errorf("%s %s as %q: %d %v %s", tc.method, tc.path, tc.accept, w.Code, w.Header(), w.Body)
		}
		if cached := w.Header().Get("Cache-Control") != ""; cached != (w.Code == http.StatusOK) {
			t.Errorf("%s %s as %q: %d is to be kept: %t", tc.method, tc.path, tc.accept, w.Code, cached)
		}
	}
}
