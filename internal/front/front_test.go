package front

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
)

// byName authenticates by the header Test-User: root is a master, "" is anonymous, wrong is refused.
type byName struct{}

func (byName) Authenticate(r *http.Request) (user.Info, error) {
	switch name := r.Header.Get("Test-User"); name {
	case "wrong":
		return nil, errors.New("wrong proof")
	case "":
		return &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}, nil
	case "root":
		return root, nil
	default:
		return &user.DefaultInfo{Name: name, Groups: []string{user.AllAuthenticated}}, nil
	}
}

var root = &user.DefaultInfo{Name: "root", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}

// everything lets every user do everything.
type everything struct{}

func (everything) Authorize(context.Context, user.Info, *request.Info) (authz.Decision, error) {
	return authz.Decision{Allowed: true}, nil
}

// newServer returns a server whose objects are answered by resources.
func newServer(t testing.TB, resources Handler, change func(*Config)) *Server {
	t.Helper()
	c := Config{
		Authenticator: byName{},
		Authorizer:    authz.Basic{},
		Resources:     resources,
		Discovery: func(w http.ResponseWriter, _ *http.Request, info *request.Info, _ user.Info) {
			_, _ = io.WriteString(w, "discovery "+info.Path)
		},
		Version: version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3+bowsprit"},
		NewID:   func() string { return "new-id" },
		Served:  func(i *request.Info) bool { return i.Resource == "pods" },
		Log:     slog.New(slog.DiscardHandler),
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

// do sends a request as user root; headers are "Key: value".
func do(s http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Header.Set("Test-User", "root")
	for _, h := range headers {
		key, value, _ := strings.Cut(h, ": ")
		r.Header.Set(key, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// status decodes the Status of an answer.
func status(t *testing.T, w *httptest.ResponseRecorder) *metav1.Status {
	t.Helper()
	var s metav1.Status
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || s.Kind != "Status" || int(s.Code) != w.Code {
		t.Fatalf("answer %d %q is no Status: %v", w.Code, w.Body, err)
	}
	return &s
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	s := newServer(t, text("objects"), func(c *Config) {
		c.Paths = map[string]Handler{"/openid/": text("openid"), "/one": text("one")}
	})
	for _, tc := range []struct {
		method, target, who string
		code                int
		body                string // of an answer that is no Status, else its message
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
		{"GET", "/livez/none", "root", 404, "the server could not find the requested resource"},
	} {
		w := do(s, tc.method, tc.target, "Test-User: "+tc.who)
		body := w.Body.String()
		if strings.Contains(body, `"Status"`) {
			body = status(t, w).Message
		}
		if w.Code != tc.code || body != tc.body {
			t.Errorf("%s %s by %q: %d %q, want %d %q", tc.method, tc.target, tc.who, w.Code, body, tc.code, tc.body)
		}
		if got := w.Header().Get("Cache-Control"); got != "no-cache, private" {
			t.Errorf("%s %s: Cache-Control %q", tc.method, tc.target, got)
		}
		if got := w.Header().Get("Audit-Id"); got != "new-id" {
			t.Errorf("%s %s: Audit-Id %q", tc.method, tc.target, got)
		}
	}
}

// TestStrictTransportSecurity looks for the header in answers of all kinds, and that no answer has it unless it is
// configured.
func TestStrictTransportSecurity(t *testing.T) {
	t.Parallel()
	for _, directives := range [][]string{nil, {"max-age=31536000"}, {"max-age=31536000", "includeSubDomains"}} {
		s := newServer(t, text("objects"), func(c *Config) { c.StrictTransportSecurity = directives })
		for target, code := range map[string]int{
			"/": 200, "/livez": 200, "/api": 200, "/api/v1/pods": 200, "/none": 404, "/api/v1/watch": 500,
		} {
			w := do(s, "GET", target, "Test-User: root")
			if got, want := w.Header().Get("Strict-Transport-Security"), strings.Join(directives, "; "); got != want ||
				w.Code != code {
				t.Errorf("%s: %d, %q, want %q", target, w.Code, got, want)
			}
		}
	}
}

func TestAuditIDIsEchoed(t *testing.T) {
	t.Parallel()
	var seen string
	s := newServer(t, func(_ http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
		seen = request.ScopeOf(r.Context()).AuditID
	}, nil)
	if got := do(s, "GET", "/api/v1/pods", "Audit-Id: mine").Header().Get("Audit-Id"); got != "mine" || seen != "mine" {
		t.Errorf("answer %q, handler %q", got, seen)
	}
}

func TestWarningsBecomeHeaders(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(http.ResponseWriter){
		"write":       func(w http.ResponseWriter) { _, _ = io.WriteString(w, "x") },
		"writeHeader": func(w http.ResponseWriter) { w.WriteHeader(201) },
		"flush":       func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
		"control":     func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() },
	} {
		s := newServer(t, func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
			request.Warn(r.Context(), "one")
			request.Warn(r.Context(), "two")
			write(w)
			request.Warn(r.Context(), "too late")
		}, nil)
		got := do(s, "GET", "/api/v1/pods").Result().Header["Warning"]
		if strings.Join(got, "|") != `299 - "one"|299 - "two"` {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestImpersonation(t *testing.T) {
	t.Parallel()
	var as user.Info
	s := newServer(t, func(_ http.ResponseWriter, r *http.Request, _ *request.Info, who user.Info) {
		as = who
		if r.Header.Get("Impersonate-User") != "" {
			t.Error("the handler sees the impersonation headers")
		}
	}, nil)
	if w := do(s, "GET", "/api/v1/pods", "Impersonate-User: jane",
		"Impersonate-Group: system:masters"); w.Code != 200 || as.GetName() != "jane" {
		t.Errorf("%d as %v", w.Code, as)
	}
	if w := do(s, "GET", "/api/v1/pods", "Impersonate-User: jane"); w.Code != 403 ||
		!strings.Contains(status(t, w).Message, `User "jane" cannot list`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := do(s, "GET", "/api", "Test-User: bob", "Impersonate-User: root"); w.Code != 403 ||
		!strings.Contains(status(t, w).Message, `User "bob" cannot impersonate-on:user-info:get path "/api"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := do(s, "GET", "/api", "Impersonate-Group: a"); w.Code != 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestPanics(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	began := false
	var cause any = "boom"
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request, _ *request.Info, _ user.Info) {
		w.Header().Set("Content-Type", "text/x")
		w.Header().Set("Content-Length", "5")
		if began {
			_, _ = io.WriteString(w, "x")
		}
		panic(cause)
	}, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&logged, nil)) })

	w := do(s, "GET", "/api/v1/pods")
	if got := status(t, w); got.Code != 500 || got.Reason != metav1.StatusReasonInternalError ||
		got.Message != "This request caused apiserver to panic. Look in the logs for details." {
		t.Errorf("status %+v", got)
	}
	if w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Audit-Id") == "" {
		t.Errorf("headers %v", w.Header())
	}
	if !strings.Contains(logged.String(), "boom") || !strings.Contains(logged.String(), "TestPanics") {
		t.Errorf("log %s", logged.String())
	}

	aborts := func() (aborted bool) {
		defer func() { aborted = recover() == http.ErrAbortHandler }()
		do(s, "GET", "/api/v1/pods")
		return
	}
	began = true
	if !aborts() {
		t.Error("an answer that had begun was not broken off")
	}
	began, cause = false, http.ErrAbortHandler
	logged.Reset()
	if !aborts() {
		t.Error("http.ErrAbortHandler did not pass")
	}
	if strings.Contains(logged.String(), "panic") {
		t.Errorf("log %s", logged.String())
	}
}

func TestThrottle(t *testing.T) {
	t.Parallel()
	inside, leave := make(chan struct{}), make(chan struct{})
	s := newServer(t, func(_ http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
		if r.Header.Get("Stay") != "" {
			inside <- struct{}{}
			<-leave
		}
	}, func(c *Config) {
		c.Authorizer = everything{}
		c.MaxRequestsInFlight, c.MaxMutationsInFlight = 2, 1
	})
	done := make(chan struct{})
	stay := func(method, target string) {
		go func() {
			do(s, method, target, "Test-User: jane", "Stay: 1")
			done <- struct{}{}
		}()
		<-inside
	}
	stay("GET", "/api/v1/pods")
	stay("GET", "/api/v1/pods?watch=1") // does not count
	if w := do(s, "GET", "/api/v1/pods", "Test-User: jane"); w.Code != 200 {
		t.Errorf("second read: %d", w.Code)
	}
	stay("GET", "/api/v1/pods/x")
	stay("DELETE", "/api/v1/pods/x")
	for _, method := range []string{"GET", "POST"} {
		w := do(s, method, "/api/v1/namespaces/n/pods", "Test-User: jane")
		if got := status(t, w); got.Code != 429 || got.Reason != metav1.StatusReasonTooManyRequests ||
			got.Message != "Too many requests, please try again later." || w.Header().Get("Retry-After") != "1" {
			t.Errorf("%s: %+v, Retry-After %q", method, got, w.Header().Get("Retry-After"))
		}
		if w := do(s, method, "/api/v1/namespaces/n/pods"); w.Code != 200 {
			t.Errorf("%s by a master: %d", method, w.Code)
		}
	}
	if w := do(s, "GET", "/api/v1/pods?watch=1", "Test-User: jane"); w.Code != 200 {
		t.Errorf("watch: %d", w.Code)
	}
	body := do(s, "GET", "/metrics").Body.String()
	for _, line := range []string{
		`apiserver_current_inflight_requests{request_kind="readOnly"} 2`,
		`apiserver_current_inflight_requests{request_kind="mutating"} 1`,
		`apiserver_longrunning_requests{component="apiserver",group="",resource="pods",scope="cluster",subresource="",verb="WATCH",version="v1"} 1`,
		`apiserver_request_terminations_total{code="429",component="apiserver",group="",resource="pods",scope="namespace",subresource="",verb="LIST",version="v1"} 1`,
	} {
		if !strings.Contains(body, line) {
			t.Errorf("metrics lack %s", line)
		}
	}
	close(leave)
	for range 4 {
		<-done
	}
	if s.reads.now.Load() != 0 || s.writes.now.Load() != 0 {
		t.Errorf("%d reads and %d writes still count", s.reads.now.Load(), s.writes.now.Load())
	}
}

// TestWaitingDoesNotCount shows that requests that wait for a webhook keep no other request out, as long as there are
// not too many of them, and count again when they go on.
func TestWaitingDoesNotCount(t *testing.T) {
	t.Parallel()
	inside, answered, leave, done := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan int)
	s := newServer(t, func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
		if r.Header.Get("Stay") != "" {
			one, two := request.Wait(r.Context()), request.Wait(r.Context()) // two webhooks at a time
			one()
			inside <- struct{}{}
			<-answered
			two()
			inside <- struct{}{}
			<-leave
		}
		w.WriteHeader(http.StatusOK)
	}, func(c *Config) {
		c.Authorizer = everything{}
		c.MaxMutationsInFlight = 1
	})
	wait := func() {
		go func() { done <- do(s, "POST", "/api/v1/namespaces/n/pods", "Test-User: jane", "Stay: hook").Code }()
	}
	write := func() int { return do(s, "POST", "/api/v1/namespaces/n/pods", "Test-User: jane").Code }
	for range waitFactor {
		wait()
		<-inside
	}
	if code := write(); code != http.StatusOK {
		t.Errorf("a write while %d wait: %d", waitFactor, code)
	}
	wait() // one too many: it counts
	<-inside
	if code := write(); code != http.StatusTooManyRequests {
		t.Errorf("a write while %d wait: %d", waitFactor+1, code)
	}
	close(answered)
	for range waitFactor + 1 {
		<-inside
	}
	if n := s.writes.now.Load(); n != waitFactor+1 {
		t.Errorf("%d writes count after their webhooks have answered", n)
	}
	close(leave)
	for range waitFactor + 1 {
		if code := <-done; code != http.StatusOK {
			t.Errorf("a write that waited: %d", code)
		}
	}
	if s.writes.now.Load() != 0 || s.writes.waiting.Load() != 0 {
		t.Errorf("%d writes still count, %d still wait", s.writes.now.Load(), s.writes.waiting.Load())
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
		if r.Method == "PUT" {
			w.WriteHeader(409)
		}
	}, nil)
	do(s, "GET", "/api/v1/namespaces/n/pods/x")
	do(s, "GET", "/api/v1/namespaces/n/pods/x")
	do(s, "GET", "/api/v1/namespaces/n/pods")
	do(s, "GET", "/api/v1/pods?watch=1")
	do(s, "PUT", "/api/v1/namespaces/n/pods/x?dryRun=All")
	do(s, "PATCH", "/api/v1/namespaces/n/pods/x?dryRun=x", "Content-Type: application/apply-patch+yaml")
	do(s, "GET", "/api/v1/invented")
	do(s, "BREW", "/invented")
	do(s, "GET", "/healthz")
	body := do(s, "GET", "/metrics").Body.String()
	for _, line := range []string{
		`apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="GET",version="v1"} 2`,
		`apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",verb="LIST",version="v1"} 1`,
		`apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="WATCH",version="v1"} 1`,
		`apiserver_request_total{code="409",component="apiserver",dry_run="All",group="",resource="pods",scope="resource",subresource="",verb="PUT",version="v1"} 1`,
		`apiserver_request_total{code="200",component="apiserver",dry_run="invalid",group="",resource="pods",scope="resource",subresource="",verb="APPLY",version="v1"} 1`,
		`apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="",scope="cluster",subresource="",verb="LIST",version=""} 1`,
		`apiserver_request_total{code="404",component="apiserver",dry_run="",group="",resource="",scope="",subresource="",verb="other",version=""} 1`,
		`apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="",scope="",subresource="/healthz",verb="GET",version=""} 1`,
		`apiserver_request_duration_seconds_count{component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="GET",version="v1"} 2`,
		`apiserver_request_duration_seconds_bucket{component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="GET",version="v1",le="0.005"}`,
		"go_goroutines ", "process_resident_memory_bytes ", "apiserver_tls_handshake_errors_total 0",
	} {
		if !strings.Contains(body, line) {
			t.Errorf("metrics lack %s", line)
		}
	}
	if strings.Contains(body, "invented") {
		t.Error("names that anybody may invent are in the metrics")
	}
}

func TestRequestsAreLogged(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	s := newServer(t, text("ok"), func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
		now := time.Unix(0, 0)
		c.Now = func() time.Time { now = now.Add(time.Millisecond); return now }
		c.RequestTimeout = 1e6 * time.Hour // the clock stands in 1970
	})
	do(s, "GET", "/api/v1/pods?limit=5", "User-Agent: test")
	if want := `method=GET uri="/api/v1/pods?limit=5" code=200 took=1ms bytes=2 user=root agent=test from=192.0.2.1:1234 auditID=new-id`; !strings.Contains(logged.String(), want) {
		t.Errorf("log %s\nwant %s", logged.String(), want)
	}
}

func BenchmarkChain(b *testing.B) {
	body := []byte(`{"kind":"CronTab"}`)
	s := newServer(b,
		func(w http.ResponseWriter, _ *http.Request, _ *request.Info, _ user.Info) { _, _ = w.Write(body) },
		func(c *Config) { c.NewID = nil })
	r := httptest.NewRequest("GET", "/apis/stable.example.com/v1/namespaces/default/crontabs/my-cron", nil)
	r.Header.Set("Test-User", "root")
	r.Header.Set("Accept", "application/json")
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	w := &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		s.ServeHTTP(w, r.WithContext(ctx)) // as net/http: each request has a context that can be cancelled
	}
}

// discard is an http.ResponseWriter that keeps nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
