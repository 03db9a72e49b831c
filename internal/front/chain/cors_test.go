package chain

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/testing/servetest"
)

func TestCORS(t *testing.T) {
	t.Parallel()
	s := newChain(t, func(w http.ResponseWriter, _ *http.Request, _ *request.Info, _ user.Info) {
		_, _ = io.WriteString(w, "ok")
	}, func(c *Config) {
		c.AllowedOrigins = []*regexp.Regexp{regexp.MustCompile(`^https://a$`), regexp.MustCompile(`//b(:|$)`)}
	})
	defer s.close()
	for _, tc := range []struct {
		name, method, origin, user string
		allowed                    bool
		code                       int
	}{
		{"no origin", "GET", "", "root", false, 200},
		{"a", "GET", "https://a", "root", true, 200},
		{"b with a port", "GET", "http://b:8080", "root", true, 200},
		{"another", "GET", "https://ab", "root", false, 200},
		{"question", "OPTIONS", "https://a", "", true, 204},
		{"question of another", "OPTIONS", "https://c", "", false, 403},
		{"refusal", "GET", "https://a", "", true, 403},
	} {
		r := httptest.NewRequest(tc.method, "/api/v1/pods", nil)
		r.Header.Set("Test-User", tc.user)
		if tc.origin != "" {
			r.Header.Set("Origin", tc.origin)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		want := map[string]string{}
		if tc.allowed {
			want = map[string]string{
				"Access-Control-Allow-Origin":      tc.origin,
				"Access-Control-Allow-Methods":     "POST, GET, OPTIONS, PUT, DELETE, PATCH",
				"Access-Control-Allow-Headers":     "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
				"Access-Control-Expose-Headers":    "Date",
				"Access-Control-Allow-Credentials": "true",
			}
		}
		for _, key := range []string{"Origin", "Methods", "Headers", "Credentials"} {
			if key = "Access-Control-Allow-" + key; w.Header().Get(key) != want[key] {
				t.Errorf("%s: %s is %q", tc.name, key, w.Header().Get(key))
			}
		}
		if key := "Access-Control-Expose-Headers"; w.Header().Get(key) != want[key] || w.Code != tc.code {
			t.Errorf("%s: %d, %v", tc.name, w.Code, w.Header())
		}
	}
}

// TestCrossSite sends the requests that a page can make a browser send, with and without a client certificate.
func TestCrossSite(t *testing.T) {
	t.Parallel()
	certificate := map[string][]string{user.CredentialIDKey: {"X509SHA256=0a"}}
	token := map[string][]string{user.CredentialIDKey: {"JTI=0a"}}
	for _, tc := range []struct {
		method  string
		extra   map[string][]string
		headers []string
		code    int
	}{
		{"POST", certificate, []string{"Sec-Fetch-Site: cross-site", "Origin: https://evil"}, 403},
		{"POST", certificate, []string{"Sec-Fetch-Site: same-site"}, 403},
		{"POST", certificate, []string{"Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site"}, 403},
		{"POST", certificate, []string{"Sec-Fetch-Site: "}, 403},
		{"DELETE", certificate, []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"GET", certificate, []string{"Sec-Fetch-Site: cross-site", "Upgrade: websocket"}, 403},
		{"GET", certificate, []string{"Sec-Fetch-Site: cross-site"}, 200},
		{"POST", certificate, []string{"Sec-Fetch-Site: same-origin", "Origin: https://server"}, 200},
		{"POST", certificate, []string{"Sec-Fetch-Site: none"}, 200},
		{"POST", certificate, []string{"Sec-Fetch-Site: cross-site", "Origin: https://a"}, 200}, // an allowed origin
		{"POST", certificate, nil, 200},
		{"POST", token, []string{"Sec-Fetch-Site: cross-site"}, 200}, // no page can set Authorization
		{"POST", nil, []string{"Sec-Fetch-Site: cross-site"}, 200},
	} {
		s := newChain(t, text("ok"), func(c *Config) {
			c.AllowedOrigins = []*regexp.Regexp{regexp.MustCompile(`^https://a$`)}
			c.Authenticator = sameUser{&user.DefaultInfo{
				Name: "root", Groups: []string{"system:masters"}, Extra: tc.extra,
			}}
		})
		w := servetest.Do(s, tc.method, "/api/v1/namespaces/default/pods", tc.headers...)
		if w.Code != tc.code {
			t.Errorf("%s %q of %v: %d %s, want %d", tc.method, tc.headers, tc.extra, w.Code, w.Body, tc.code)
		}
		s.close()
	}
}

// sameUser authenticates every request as one user.
type sameUser struct{ u user.Info }

func (s sameUser) Authenticate(*http.Request) (user.Info, error) { return s.u, nil }
