package front

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"

	"github.com/bowsprit/bowsprit/internal/testing/servetest"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	etcd := error(nil)
	s := newServer(t, text(""), func(c *Config) {
		c.Checks = []Check{
			{Name: "etcd", Run: func(context.Context) error { return etcd }},
			{Name: "view", Run: func(context.Context) error { return nil }, ReadyOnly: true},
		}
	})
	for _, tc := range []struct {
		target string
		etcd   string
		code   int
		body   string
	}{
		{"/livez", "", 200, "ok"},
		{"/healthz", "", 200, "ok"},
		{"/readyz?verbose", "", 200, "[+]ping ok\n[+]etcd ok\n[+]view ok\n[+]shutdown ok\nreadyz check passed\n"},
		{"/livez?verbose", "", 200, "[+]ping ok\n[+]etcd ok\nlivez check passed\n"},
		{"/healthz?verbose=", "", 200, "[+]ping ok\n[+]etcd ok\nhealthz check passed\n"},
		{"/readyz", "disk full", 500,
			"[+]ping ok\n[-]etcd failed: reason withheld\n[+]view ok\n[+]shutdown ok\nreadyz check failed\n"},
		{"/readyz?exclude=etcd", "disk full", 200, "ok"},
		{"/livez?verbose&exclude=etcd&exclude=b&exclude=a&exclude=b", "disk full", 200,
			"[+]ping ok\n[+]etcd excluded: ok\nwarn: some health checks cannot be excluded: no matches for \"a\",\"b\"\nlivez check passed\n"},
		{"/readyz/etcd", "", 200, "ok"},
		{"/readyz/etcd", "disk full", 500, "internal server error: disk full\n"},
		{"/readyz/shutdown", "", 200, "ok"},
	} {
		etcd = nil
		if tc.etcd != "" {
			etcd = errors.New(tc.etcd)
		}
		w := servetest.Do(s, "GET", tc.target)
		if w.Code != tc.code || w.Body.String() != tc.body {
			t.Errorf("%s: %d %q, want %d %q", tc.target, w.Code, w.Body, tc.code, tc.body)
		}
		if got := w.Header().Get("Content-Type"); got != "text/plain; charset=utf-8" {
			t.Errorf("%s: Content-Type %q", tc.target, got)
		}
	}
}

// TestHealthWithSlash checks that, as in Kubernetes, only checks are below the path of an endpoint.
func TestHealthWithSlash(t *testing.T) {
	t.Parallel()
	s := newServer(t, text(""), func(*Config) {})
	for _, target := range []string{"/healthz/", "/livez/", "/readyz/", "/healthz/nonesuch", "/healthz/ping/"} {
		if w := servetest.Do(s, "GET", target); w.Code != 404 || w.Body.String() != "404 page not found\n" {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
}

// TestSLIs checks the metrics of health checks, with the names of Kubernetes. An excluded check, or one requested
// alone, is not counted.
func TestSLIs(t *testing.T) {
	t.Parallel()
	etcd := error(nil)
	s := newServer(t, text(""), func(c *Config) {
		c.Started = time.Unix(1e9, 0)
		c.Checks = []Check{{Name: "etcd", Run: func(context.Context) error { return etcd }}}
	})
	servetest.Do(s, "GET", "/livez")
	servetest.Do(s, "GET", "/readyz")
	etcd = errors.New("disk full")
	servetest.Do(s, "GET", "/readyz?verbose")
	servetest.Do(s, "GET", "/readyz?exclude=etcd")
	servetest.Do(s, "GET", "/readyz/etcd")
	const want = `# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single healthcheck.
# TYPE kubernetes_healthcheck gauge
kubernetes_healthcheck{name="etcd",type="livez"} 1
kubernetes_healthcheck{name="etcd",type="readyz"} 0
kubernetes_healthcheck{name="ping",type="livez"} 1
kubernetes_healthcheck{name="ping",type="readyz"} 1
kubernetes_healthcheck{name="shutdown",type="readyz"} 1
# HELP kubernetes_healthchecks_total [STABLE] This metric records the results of all healthcheck.
# TYPE kubernetes_healthchecks_total counter
kubernetes_healthchecks_total{name="etcd",status="error",type="readyz"} 1
kubernetes_healthchecks_total{name="etcd",status="success",type="livez"} 1
kubernetes_healthchecks_total{name="etcd",status="success",type="readyz"} 1
kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 1
kubernetes_healthchecks_total{name="ping",status="success",type="readyz"} 3
kubernetes_healthchecks_total{name="shutdown",status="success",type="readyz"} 3
# HELP process_start_time_seconds [ALPHA] Start time of the process since unix epoch in seconds.
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1e+09
`
	if w := servetest.Do(s, "GET", "/metrics/slis"); w.Code != 200 || w.Body.String() != want ||
		w.Header().Get("Process-Start-Time-Unix") != "1000000000" {
		t.Errorf("%d %v\n%s", w.Code, w.Header(), w.Body)
	}
}

func TestVersionAndIndex(t *testing.T) {
	t.Parallel()
	s := newServer(t, text(""), func(c *Config) {
		c.OpenAPI = text("")
		c.Checks = []Check{{Name: "etcd"}, {Name: "view", ReadyOnly: true}}
		c.APIPaths = func() []string { return []string{"/apis/example.com", "/api", "/apis"} }
	})
	for _, target := range []string{"/version", "/version/"} {
		w := servetest.Do(s, "GET", target, "Test-User: ")
		var got version.Info
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.GitVersion != "v1.37.2+bowsprit" ||
			w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v %q %v", target, err, w.Body, w.Header())
		}
		if !strings.HasPrefix(w.Body.String(), "{\n  \"major\": \"1\",\n") {
			t.Errorf("%s: %q is not laid out as kube-apiserver's", target, w.Body)
		}
	}
	var paths struct{ Paths []string }
	if err := json.Unmarshal(servetest.Do(s, "GET", "/").Body.Bytes(), &paths); err != nil ||
		strings.Join(paths.Paths,
			" ") != "/api /apis /apis/example.com /healthz /healthz/etcd /healthz/ping /livez /livez/etcd /livez/ping /metrics /metrics/slis "+
			"/openapi/v2 /openapi/v3 /openapi/v3/ /readyz /readyz/etcd /readyz/ping /readyz/shutdown /readyz/view /version" {
		t.Errorf("index %v %v", paths, err)
	}
}

func TestVersionInfo(t *testing.T) {
	t.Parallel()
	for build, want := range map[string]string{"": "v1.37.2+bowsprit", "0.1.0": "v1.37.2+bowsprit.0.1.0"} {
		got := VersionInfo(Build{Version: build}, Emulation{"1.34", "1.33"})
		if parsed, err := utilversion.ParseSemantic(got.GitVersion); err != nil || got.GitVersion != want ||
			!parsed.EqualTo(utilversion.MustParseSemantic(Kubernetes)) {
			t.Errorf("build %q: %q, %v", build, got.GitVersion, err)
		}
		if numbers := []string{got.Major, got.Minor, got.EmulationMajor, got.EmulationMinor, got.MinCompatibilityMajor,
			got.MinCompatibilityMinor}; strings.Join(numbers, " ") != "1 37 1 34 1 33" {
			t.Errorf("versions %v", numbers)
		}
	}
}

func TestReadyzWhileClosing(t *testing.T) {
	t.Parallel()
	s := newServer(t, text("objects"), nil)
	s.chain.Close()
	w := servetest.Do(s, "GET", "/readyz")
	if w.Code != 500 || !strings.Contains(w.Body.String(), "[-]shutdown failed") {
		t.Errorf("readyz %d %s", w.Code, w.Body)
	}
	if w := servetest.Do(s, "GET", "/readyz/shutdown"); w.Body.String() != "internal server error: process is shutting down\n" {
		t.Errorf("readyz/shutdown %q", w.Body)
	}
}

// TestMetricsPage checks that one page has the metrics of the chain and of connections.
func TestMetricsPage(t *testing.T) {
	t.Parallel()
	body := servetest.Do(newServer(t, text(""), nil), "GET", "/metrics").Body.String()
	for _, line := range []string{
		`apiserver_current_inflight_requests{request_kind="readOnly"} 1`, `apiserver_tls_handshake_errors_total 0`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("metrics lack %s", line)
		}
	}
}
