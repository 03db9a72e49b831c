package chain

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWelcome checks that a browser gets a page at /, even without credentials, and that other clients do not.
func TestWelcome(t *testing.T) {
	t.Parallel()
	s := newChain(t, nil, nil)
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for name, test := range map[string]struct {
		method, path, accept, user string
		wantCode                   int
		wantHTML                   bool
	}{
		"a browser":                 {"GET", "/", browser, "", 200, true},
		"a browser of root":         {"GET", "/", browser, "root", 200, true},
		"kubectl":                   {"GET", "/", "application/json, */*", "root", 200, false},
		"curl":                      {"GET", "/", "*/*", "", 403, false},
		"a browser at another path": {"GET", "/metrics", browser, "", 403, false},
		"a form":                    {"POST", "/", browser, "", 403, false},
		"a stranger":                {"GET", "/", browser, "wrong", 401, false},
	} {
		r := httptest.NewRequest(test.method, test.path, nil)
		r.Header.Set("Accept", test.accept)
		r.Header.Set("Test-User", test.user)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		html := strings.HasPrefix(w.Header().Get("Content-Type"), "text/html")
		if w.Code != test.wantCode || html != test.wantHTML {
			t.Errorf("%s: %d %s", name, w.Code, w.Header().Get("Content-Type"))
		}
		if html && (!strings.Contains(w.Body.String(), "v1.37.2") || !strings.Contains(w.Body.String(), "pki/ca.crt") ||
			!strings.Contains(w.Body.String(), "bowsprit kubeconfig --merge")) {
			t.Errorf("%s: the page lacks something:\n%s", name, w.Body)
		}
	}
}
