package chain

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
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
