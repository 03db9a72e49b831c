package front

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/auth/rbac"
	"github.com/bowsprit/bowsprit/internal/front/chain"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/testing/servetest"
)

// publicPaths lets everyone get health and version, and authenticated users the discovery.
func publicPaths() *rbac.Evaluator {
	e := rbac.New(slog.New(slog.DiscardHandler))
	grant := func(name, group string, urls ...string) {
		e.Apply(
			rbac.Change{Name: name, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: urls}}},
			rbac.Change{Binding: true, Name: name, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: group}}})
	}
	public := []string{"/healthz", "/livez", "/readyz", "/version", "/version/"}
	grant("public", user.AllUnauthenticated, public...)
	grant("known", user.AllAuthenticated, append(public, "/api", "/api/*", "/apis", "/apis/*", "/openapi/*")...)
	return e
}

// newServer returns a server with resources as the handler of objects.
func newServer(t testing.TB, resources Handler, change func(*Config)) *Server {
	t.Helper()
	c := Config{
		Config: chain.Config{
			Authenticator: servetest.ByName{},
			Authorizer:    authz.Union{publicPaths()},
			Version:       version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2+bowsprit"},
			NewID:         func() string { return "new-id" },
			Served:        func(i *request.Info) bool { return i.Resource == "pods" },
			LongRunning:   func(*request.Info) bool { return false },
			Metrics:       prometheus.NewRegistry(),
			Log:           slog.New(slog.DiscardHandler),

			RequestTimeout: time.Minute, MaxRequestsInFlight: 400, MaxMutationsInFlight: 200,
		},
		Resources: resources,
		Discovery: func(w http.ResponseWriter, _ *http.Request, info *request.Info, _ user.Info) {
			_, _ = io.WriteString(w, "discovery "+info.Path)
		},
		DirectHTTP2: strings.Contains(t.Name(), directHTTP2),
	}
	if change != nil {
		change(&c)
	}
	return New(c)
}

// text answers with a text.
func text(s string) Handler {
	return func(w http.ResponseWriter, _ *http.Request, _ *request.Info, _ user.Info) {
		_, _ = io.WriteString(w, s)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	s := newServer(t, text("objects"), func(c *Config) {
		c.Paths = map[string]Handler{"/openid/": text("openid"), "/one": text("one")}
	})
	for _, tc := range []struct {
		method, target, name string
		code                 int
		body                 string // of a response that is not a Status, else its message
	}{
		{"GET", "/api/v1/pods", "root", 200, "objects"},
		{"GET", "/api", "root", 200, "discovery /api"},
		{"GET", "/api/v1", "jane", 200, "discovery /api/v1"},
		{"GET", "/apis/", "jane", 200, "discovery /apis/"},
		{"GET", "/apis/g.io/v1", "jane", 200, "discovery /apis/g.io/v1"},
		{"GET", "/openid/v1/jwks", "root", 200, "openid"},
		{"GET", "/one", "root", 200, "one"},
		{"GET", "/one/two", "root", 404, "the server could not find the requested resource"},
		{"GET", "/openapi/v2", "root", 404, "the server could not find the requested resource"},
		{"GET", "/foo", "root", 404, "the server could not find the requested resource"},
		{"POST", "/foo/bar", "root", 404, "the server could not find the requested resource"},
		{"GET", "//", "root", 404, "the server could not find the requested resource"},
		{"GET", "/foo", "jane", 403, `forbidden: User "jane" cannot get path "/foo"`},
		{"GET", "/foo", "", 403, `forbidden: User "system:anonymous" cannot get path "/foo"`},
		{"GET", "/api", "", 403, `forbidden: User "system:anonymous" cannot get path "/api"`},
		{"GET", "/api/v1/namespaces/default/pods", "jane", 403,
			`pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "default"`},
		{"GET", "/api/v1/pods", "wrong", 401, "Unauthorized"},
		{"GET", "/api/v1/watch", "root", 500,
			"Internal error occurred: failed to create RequestInfo: unable to determine kind and namespace from url, /api/v1/watch"},
		{"GET", "/api/v1/pods?timeout=x", "root", 400,
			`invalid timeout specified in the request URL - time: invalid duration "x"`},
		{"GET", "/api/v1/pods?timeout=1h", "root", 200, "objects"},
		{"GET", "/api/v1/pods?timeout=0s", "root", 200, "objects"},
		{"GET", "/api/v1/pods?timeout=-3s", "root", 200, "objects"},
		{"GET", "/api/v1/pods?%74imeout=x", "root", 400,
			`invalid timeout specified in the request URL - time: invalid duration "x"`},
		{"GET", "/api/v1/pods?watch=1&timeout=x", "root", 200, "objects"},
		{"POST", "/version", "root", 405, "the server does not allow this method on the requested resource"},
		{"GET", "/version/x", "root", 404, "the server could not find the requested resource"},
		{"GET", "/livez", "", 200, "ok"},
		{"GET", "/livez/ping", "root", 200, "ok"},
		{"GET", "/livez/none", "root", 404, "404 page not found\n"},
	} {
		w := servetest.Do(s, tc.method, tc.target, "Test-User: "+tc.name)
		body := w.Body.String()
		if strings.Contains(body, `"Status"`) {
			body = servetest.Status(t, w).Message
		}
		if w.Code != tc.code || body != tc.body {
			t.Errorf("%s %s by %q: %d %q, want %d %q", tc.method, tc.target, tc.name, w.Code, body, tc.code, tc.body)
		}
		if got := w.Header().Get("Cache-Control"); got != "no-cache, private" {
			t.Errorf("%s %s: Cache-Control %q", tc.method, tc.target, got)
		}
		if got := w.Header().Get("Audit-Id"); got != "new-id" {
			t.Errorf("%s %s: Audit-Id %q", tc.method, tc.target, got)
		}
	}
}

// TestStrictTransportSecurity checks that responses of all kinds have the header if it is configured, and none
// otherwise.
func TestStrictTransportSecurity(t *testing.T) {
	t.Parallel()
	for _, directives := range [][]string{nil, {"max-age=31536000"}, {"max-age=31536000", "includeSubDomains"}} {
		s := newServer(t, text("objects"), func(c *Config) { c.StrictTransportSecurity = directives })
		for target, code := range map[string]int{
			"/": 200, "/livez": 200, "/api": 200, "/api/v1/pods": 200, "/none": 404, "/api/v1/watch": 500,
		} {
			w := servetest.Do(s, "GET", target, "Test-User: root")
			if got, want := w.Header().Get("Strict-Transport-Security"), strings.Join(directives, "; "); got != want ||
				w.Code != code {
				t.Errorf("%s: %d, %q, want %q", target, w.Code, got, want)
			}
		}
	}
}
