package front

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
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
		{"/healthz/", "", 200, "ok"},
		{"/readyz?verbose", "", 200, "[+]ping ok\n[+]etcd ok\n[+]view ok\n[+]shutdown ok\nreadyz check passed\n"},
		{"/livez?verbose", "", 200, "[+]ping ok\n[+]etcd ok\nlivez check passed\n"},
		{"/healthz?verbose=", "", 200, "[+]ping ok\n[+]etcd ok\nhealthz check passed\n"},
		{"/readyz", "disk full", 500, "[+]ping ok\n[-]etcd failed: reason withheld\n[+]view ok\n[+]shutdown ok\nreadyz check failed\n"},
		{"/readyz?exclude=etcd", "disk full", 200, "ok"},
		{"/livez?verbose&exclude=etcd&exclude=b&exclude=a&exclude=b", "disk full", 200, "[+]ping ok\n[+]etcd excluded: ok\nwarn: some health checks cannot be excluded: no matches for \"a\",\"b\"\nlivez check passed\n"},
		{"/readyz/etcd", "", 200, "ok"},
		{"/readyz/etcd", "disk full", 500, "internal server error: disk full\n"},
		{"/readyz/shutdown", "", 200, "ok"},
	} {
		etcd = nil
		if tc.etcd != "" {
			etcd = errors.New(tc.etcd)
		}
		w := do(s, "GET", tc.target)
		if w.Code != tc.code || w.Body.String() != tc.body {
			t.Errorf("%s: %d %q, want %d %q", tc.target, w.Code, w.Body, tc.code, tc.body)
		}
		if got := w.Header().Get("Content-Type"); got != "text/plain; charset=utf-8" {
			t.Errorf("%s: Content-Type %q", tc.target, got)
		}
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
		w := do(s, "GET", target, "Test-User: ")
		var got version.Info
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.GitVersion != "v1.36.3+bowsprit" || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v %q %v", target, err, w.Body, w.Header())
		}
		if !strings.HasPrefix(w.Body.String(), "{\n  \"major\": \"1\",\n") {
			t.Errorf("%s: %q is not laid out as kube-apiserver's", target, w.Body)
		}
	}
	var paths struct{ Paths []string }
	if err := json.Unmarshal(do(s, "GET", "/").Body.Bytes(), &paths); err != nil || strings.Join(paths.Paths, " ") != "/api /apis /apis/example.com /healthz /healthz/etcd /healthz/ping /livez /livez/etcd /livez/ping /metrics "+
		"/openapi/v2 /openapi/v3 /openapi/v3/ /readyz /readyz/etcd /readyz/ping /readyz/shutdown /readyz/view /version" {
		t.Errorf("index %v %v", paths, err)
	}
}

func TestVersionInfo(t *testing.T) {
	t.Parallel()
	for build, want := range map[string]string{"": "v1.36.3+bowsprit", "0.1.0": "v1.36.3+bowsprit.0.1.0"} {
		got := VersionInfo(Build{Version: build})
		if parsed, err := utilversion.ParseSemantic(got.GitVersion); err != nil || got.GitVersion != want || !parsed.EqualTo(utilversion.MustParseSemantic(Kubernetes)) {
			t.Errorf("build %q: %q, %v", build, got.GitVersion, err)
		}
	}
}
