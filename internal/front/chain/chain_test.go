package chain

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/front/conn"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/testing/servetest"
)

// behind handles requests for objects by a function, and requests for the metrics of a chain.
type behind struct {
	resources func(w http.ResponseWriter, r *http.Request, info *request.Info, u user.Info)
	metrics   http.Handler
}

func (b behind) Dispatch(w http.ResponseWriter, r *http.Request, info *request.Info, u user.Info) {
	switch {
	case info.IsResource:
		b.resources(w, r, info, u)
	case info.Path == "/metrics":
		b.metrics.ServeHTTP(w, r)
	case info.Path == "/invented":
		w.WriteHeader(http.StatusNotFound)
	default:
		_, _ = io.WriteString(w, "ok")
	}
}

func (b behind) HasPath(path string) bool { return path == "/metrics" || path == "/healthz" }

// newChain returns a chain in front of a handler of requests for objects.
func newChain(t testing.TB, resources handler, change func(*Config)) *Chain {
	t.Helper()
	c := Config{
		Authenticator: servetest.ByName{},
		Authorizer:    authz.Union{},
		Metrics:       prometheus.NewRegistry(),
		Version:       version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2+bowsprit"},
		NewID:         func() string { return "new-id" },
		Served:        func(i *request.Info) bool { return i.Resource == "pods" },
		LongRunning:   func(*request.Info) bool { return false },
		Log:           slog.New(slog.DiscardHandler),

		RequestTimeout: time.Minute, MaxRequestsInFlight: 400, MaxMutationsInFlight: 200,
	}
	if change != nil {
		change(&c)
	}
	metrics := promhttp.HandlerFor(c.Metrics, promhttp.HandlerOpts{})
	return New(c, behind{resources, metrics}, &conn.Hijacked{})
}

type handler = func(w http.ResponseWriter, r *http.Request, info *request.Info, u user.Info)

// text returns a handler that responds with a text.
func text(s string) handler {
	return func(w http.ResponseWriter, _ *http.Request, _ *request.Info, _ user.Info) {
		_, _ = io.WriteString(w, s)
	}
}

func TestAuditIDIsEchoed(t *testing.T) {
	t.Parallel()
	var seen string
	s := newChain(t, func(_ http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
		seen = request.ScopeOf(r.Context()).AuditID
	}, nil)
	got := servetest.Do(s, "GET", "/api/v1/pods", "Audit-Id: mine").Header().Get("Audit-Id")
	if got != "mine" || seen != "mine" {
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
		s := newChain(t, func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
			request.Warn(r.Context(), "one")
			request.Warn(r.Context(), "two")
			write(w)
			request.Warn(r.Context(), "too late")
		}, nil)
		got := servetest.Do(s, "GET", "/api/v1/pods").Result().Header["Warning"]
		if strings.Join(got, "|") != `299 - "one"|299 - "two"` {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestImpersonation(t *testing.T) {
	t.Parallel()
	var as user.Info
	s := newChain(t, func(_ http.ResponseWriter, r *http.Request, _ *request.Info, u user.Info) {
		as = u
		if r.Header.Get("Impersonate-User") != "" {
			t.Error("the handler sees the impersonation headers")
		}
	}, nil)
	if w := servetest.Do(s, "GET", "/api/v1/pods", "Impersonate-User: jane",
		"Impersonate-Group: system:masters"); w.Code != 200 || as.GetName() != "jane" {
		t.Errorf("%d as %v", w.Code, as)
	}
	if w := servetest.Do(s, "GET", "/api/v1/pods", "Impersonate-User: jane"); w.Code != 403 ||
		w.Header().Get("X-Content-Type-Options") != "nosniff" ||
		!strings.Contains(servetest.Status(t, w).Message, `User "jane" cannot list`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := servetest.Do(s, "GET", "/api", "Test-User: bob", "Impersonate-User: root"); w.Code != 403 ||
		w.Header().Get("X-Content-Type-Options") != "nosniff" ||
		!strings.Contains(servetest.Status(t, w).Message, `User "bob" cannot impersonate-on:user-info:get path "/api"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := servetest.Do(s, "GET", "/api", "Impersonate-Group: a"); w.Code != 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestImpersonationMetrics checks that without the constrained modes the step has its older name and no own metrics.
func TestImpersonationMetrics(t *testing.T) {
	t.Parallel()
	const prefix, filters = "apiserver_impersonation_", "apiserver_request_filter_duration_seconds"
	for older, want := range map[bool]string{false: "constrainedimpersonation", true: "impersonation"} {
		registry := prometheus.NewRegistry()
		s := newChain(t, func(http.ResponseWriter, *http.Request, *request.Info, user.Info) {}, func(c *Config) {
			c.Metrics, c.LegacyImpersonation = registry, older
		})
		servetest.Do(s, "GET", "/api/v1/pods", "Impersonate-User: jane", "Impersonate-Group: system:masters")
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		counted, named := false, false
		for _, family := range families {
			counted = counted || strings.HasPrefix(family.GetName(), prefix)
			for _, m := range family.GetMetric() {
				named = named || family.GetName() == filters && m.GetLabel()[0].GetValue() == want
			}
		}
		if counted == older || !named {
			t.Errorf("older %v: counts attempts %v, has the filter %s: %v", older, counted, want, named)
		}
	}
}

func TestPanics(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	began := false
	var cause any = "boom"
	s := newChain(t, func(w http.ResponseWriter, _ *http.Request, _ *request.Info, _ user.Info) {
		w.Header().Set("Content-Type", "text/x")
		w.Header().Set("Content-Length", "5")
		if began {
			_, _ = io.WriteString(w, "x")
		}
		panic(cause)
	}, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&logged, nil)) })

	w := servetest.Do(s, "GET", "/api/v1/pods")
	if got := servetest.Status(t, w); got.Code != 500 || got.Reason != metav1.StatusReasonInternalError ||
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
		servetest.Do(s, "GET", "/api/v1/pods")
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
	s := newChain(t, func(_ http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
		if r.Header.Get("Stay") != "" {
			inside <- struct{}{}
			<-leave
		}
	}, func(c *Config) {
		c.Authorizer = servetest.Everything{}
		c.MaxRequestsInFlight, c.MaxMutationsInFlight = 2, 1
	})
	done := make(chan struct{})
	stay := func(method, target string) {
		go func() {
			servetest.Do(s, method, target, "Test-User: jane", "Stay: 1")
			done <- struct{}{}
		}()
		<-inside
	}
	stay("GET", "/api/v1/pods")
	stay("GET", "/api/v1/pods?watch=1") // does not count
	if w := servetest.Do(s, "GET", "/api/v1/pods", "Test-User: jane"); w.Code != 200 {
		t.Errorf("second read: %d", w.Code)
	}
	stay("GET", "/api/v1/pods/x")
	stay("DELETE", "/api/v1/pods/x")
	for _, method := range []string{"GET", "POST"} {
		w := servetest.Do(s, method, "/api/v1/namespaces/n/pods", "Test-User: jane")
		if got := servetest.Status(t, w); got.Code != 429 || got.Reason != metav1.StatusReasonTooManyRequests ||
			got.Message != "Too many requests, please try again later." || w.Header().Get("Retry-After") != "1" {
			t.Errorf("%s: %+v, Retry-After %q", method, got, w.Header().Get("Retry-After"))
		}
		if w := servetest.Do(s, method, "/api/v1/namespaces/n/pods"); w.Code != 200 {
			t.Errorf("%s by a master: %d", method, w.Code)
		}
	}
	if w := servetest.Do(s, "GET", "/api/v1/pods?watch=1", "Test-User: jane"); w.Code != 200 {
		t.Errorf("watch: %d", w.Code)
	}
	body := servetest.Do(s, "GET", "/metrics").Body.String()
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

// TestWaitingDoesNotCount checks that requests waiting for a webhook do not keep other requests out, up to a limit, and
// count again when they continue.
func TestWaitingDoesNotCount(t *testing.T) {
	t.Parallel()
	inside, answered, leave, done := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan int)
	s := newChain(t, func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
		if r.Header.Get("Stay") != "" {
			one, two := request.Wait(r.Context()), request.Wait(r.Context()) // two webhooks at once
			one()
			inside <- struct{}{}
			<-answered
			two()
			inside <- struct{}{}
			<-leave
		}
		w.WriteHeader(http.StatusOK)
	}, func(c *Config) {
		c.Authorizer = servetest.Everything{}
		c.MaxMutationsInFlight = 1
	})
	wait := func() {
		go func() {
			done <- servetest.Do(s, "POST", "/api/v1/namespaces/n/pods", "Test-User: jane", "Stay: hook").Code
		}()
	}
	write := func() int { return servetest.Do(s, "POST", "/api/v1/namespaces/n/pods", "Test-User: jane").Code }
	for range waitFactor {
		wait()
		<-inside
	}
	if code := write(); code != http.StatusOK {
		t.Errorf("a write while %d wait: %d", waitFactor, code)
	}
	wait() // one above the limit: it counts
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
	s := newChain(t, func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
		if r.Method == "PUT" {
			w.WriteHeader(409)
		}
	}, nil)
	servetest.Do(s, "GET", "/api/v1/namespaces/n/pods/x")
	servetest.Do(s, "GET", "/api/v1/namespaces/n/pods/x")
	servetest.Do(s, "GET", "/api/v1/namespaces/n/pods")
	servetest.Do(s, "GET", "/api/v1/pods?watch=1")
	servetest.Do(s, "PUT", "/api/v1/namespaces/n/pods/x?dryRun=All")
	servetest.Do(s, "PATCH", "/api/v1/namespaces/n/pods/x?dryRun=x", "Content-Type: application/apply-patch+yaml")
	servetest.Do(s, "GET", "/api/v1/invented")
	servetest.Do(s, "BREW", "/invented")
	servetest.Do(s, "GET", "/healthz")
	body := servetest.Do(s, "GET", "/metrics").Body.String()
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
		"go_goroutines ", "process_resident_memory_bytes ",
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
	s := newChain(t, text("ok"), func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
		now := time.Unix(0, 0)
		c.Now = func() time.Time { now = now.Add(time.Millisecond); return now }
		c.RequestTimeout = 1e6 * time.Hour // the clock stands in 1970
	})
	servetest.Do(s, "GET", "/api/v1/pods?limit=5", "User-Agent: test")
	if want := `msg=HTTP verb=LIST URI="/api/v1/pods?limit=5" latency=5ms userAgent=test audit-ID=new-id srcIP=192.0.2.1:1234 user=root resp=200 bytes=2`; !strings.Contains(logged.String(), want) {
		t.Errorf("log %s\nwant %s", logged.String(), want)
	}
}

func BenchmarkChain(b *testing.B) {
	body := []byte(`{"kind":"CronTab"}`)
	s := newChain(b,
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
		s.ServeHTTP(w, r.WithContext(ctx)) // as in net/http, each request has a context that can be cancelled
	}
}

// discard is an http.ResponseWriter that discards its input.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header { return d.header }

func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

func (d *discard) WriteHeader(int) {}

// TestNewID checks that audit IDs are distinct UUIDs of version 4.
func TestNewID(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		id, err := uuid.Parse(newID())
		if err != nil || id.Version() != 4 || id.Variant() != uuid.RFC4122 || seen[id.String()] {
			t.Fatalf("%v: %v, version %v, variant %v", id, err, id.Version(), id.Variant())
		}
		seen[id.String()] = true
	}
}
