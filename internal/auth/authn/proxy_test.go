package authn

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// proxied returns an Authenticator that accepts front proxies of one authority and clients of another.
func proxied(t *testing.T, change func(*Config)) (a *Authenticator, proxies, clients *authority) {
	t.Helper()
	proxies, clients = newAuthority(t, nil, "proxies"), newAuthority(t, nil, "clients")
	proxyRoots, clientRoots := pool(proxies), pool(clients)
	c := Config{
		Proxy: &FrontProxy{
			Roots: func() *x509.CertPool { return proxyRoots }, AllowedNames: []string{"front", "back"},
			UsernameHeaders: []string{"X-Remote-User", "X-Old-User"}, UIDHeaders: []string{"X-Remote-Uid"},
			GroupHeaders: []string{"X-Remote-Group", "x-team"}, ExtraPrefixes: []string{"x-remote-extra-", "X-More-"},
		},
		ClientRoots: func() *x509.CertPool { return clientRoots },
		Now:         func() time.Time { return start.Add(time.Minute) },
	}
	if change != nil {
		change(&c)
	}
	return New(c), proxies, clients
}

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestFrontProxy(t *testing.T) {
	t.Parallel()
	a, proxies, clients := proxied(t, nil)
	named := func(by *authority, name string) *authority { return by.sign(t, pkix.Name{CommonName: name}, nil) }
	front, eve, jane := named(proxies, "front"), named(proxies, "eve"), named(clients, "jane")
	middle := newAuthority(t, proxies, "middle")
	remote := headers("X-Remote-User", "bob")
	for _, tc := range []struct {
		name   string
		chain  []*authority
		header http.Header
		want   string // name uid groups extra, or "error: text"
	}{
		{"right authority and name", []*authority{front}, remote, "bob  system:authenticated map[]"},
		{"through an intermediate", []*authority{named(middle, "back"), middle}, remote,
			"bob  system:authenticated map[]"},
		{"all headers", []*authority{front}, headers("X-Remote-User", "bob", "X-Remote-Uid", "7",
			"X-Remote-Group", "a", "X-Remote-Group", "", "X-Team", "b", "X-Remote-Extra-Acme.com%2Fk", "1",
			"X-More-Other", "2"),
			"bob 7 a,b,system:authenticated map[acme.com/k:[1] other:[2]]"},
		{"first user that is not empty", []*authority{front}, headers("X-Remote-User", "", "X-Old-User", "old"),
			"old  system:authenticated map[]"},
		{"only the first value", []*authority{front}, headers("X-Remote-User", "bob", "X-Remote-User", "admin"),
			"bob  system:authenticated map[]"},
		{"anonymous client of the proxy", []*authority{front},
			headers("X-Remote-User", "system:anonymous", "X-Remote-Group", "system:unauthenticated"),
			"system:anonymous  system:unauthenticated map[]"},
		{"wrong name", []*authority{eve}, remote, "error: x509: subject with cn=eve is not in the allowed list"},
		{"wrong authority", []*authority{named(newAuthority(t, nil, "proxies"), "front")}, remote,
			"error: signed by unknown authority"},
		{"client with headers", []*authority{jane}, remote, "jane  system:authenticated map[]"},
		{"client that is named as a proxy", []*authority{named(clients, "front")}, remote,
			"front  system:authenticated map[]"},
		{"no certificate", nil, remote, "system:anonymous  system:unauthenticated map[]"},
		{"proxy that names no user", []*authority{front}, nil, "error: signed by unknown authority"},
		{"groups without user", []*authority{front}, headers("X-Remote-Group", "system:masters"),
			"error: signed by unknown authority"},
		{"client without a name", []*authority{named(clients, "")}, nil, "error: signed by unknown authority"},
		{"expired", []*authority{proxies.sign(t, pkix.Name{CommonName: "front"},
			func(c *x509.Certificate) { c.NotAfter = start })}, remote, "error: expired"},
		{"for servers", []*authority{proxies.sign(t, pkix.Name{CommonName: "front"}, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		})}, remote, "error: incompatible key usage"},
	} {
		for range 2 { // the second time from the cache
			r := withCertificates(tc.chain...)
			if tc.header != nil {
				r.Header = tc.header.Clone()
			}
			u, err := a.Authenticate(r)
			got := ""
			if err != nil {
				got = "error: " + err.Error()
				if want, isErr := strings.CutPrefix(tc.want, "error: "); isErr && strings.Contains(got, want) {
					got = tc.want
				}
			} else {
				extra := map[string][]string{}
				for key, values := range u.GetExtra() {
					if key != "authentication.kubernetes.io/credential-id" {
						extra[key] = values
					}
				}
				got = fmt.Sprintf("%s %s %s %v", u.GetName(), u.GetUID(), strings.Join(u.GetGroups(), ","), extra)
				if len(r.Header) > 0 {
					t.Errorf("%s: headers are left: %v", tc.name, r.Header)
				}
			}
			if got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
			}
		}
	}
}

func TestFrontProxyOfAnyName(t *testing.T) {
	t.Parallel()
	a, proxies, _ := proxied(t, func(c *Config) { c.Proxy.AllowedNames = nil })
	r := withCertificates(proxies.sign(t, pkix.Name{CommonName: "whatever"}, nil))
	r.Header = headers("X-Remote-User", "bob")
	if u, err := a.Authenticate(r); err != nil || u.GetName() != "bob" {
		t.Errorf("%v, %v", u, err)
	}
}

// TestHeadersOfNoProxy checks that without front proxies their headers have no effect and are removed.
func TestHeadersOfNoProxy(t *testing.T) {
	t.Parallel()
	h := headers("X-Remote-User", "bob", "X-Remote-Group", "system:masters", "X-Remote-Uid", "1",
		"X-Remote-Extra-K", "v", "X-Remote-Address", "stays")
	r := httptest.NewRequest("GET", "/", nil)
	r.Header = h
	u, err := New(Config{}).Authenticate(r)
	must(t, err)
	if u.GetName() != "system:anonymous" {
		t.Errorf("got %v", u)
	}
	if wanted, err := Impersonation(h); wanted != nil || err != nil || len(h) != 1 || h.Get("X-Remote-Address") == "" {
		t.Errorf("got %v, %v; headers are left: %v", wanted, err, h)
	}
}

func TestAnonymousPaths(t *testing.T) {
	t.Parallel()
	a := New(Config{AnonymousPaths: []string{"/livez", "/readyz"}})
	for path, ok := range map[string]bool{
		"/livez": true, "/readyz": true, "/livez?verbose": true, "/livez/": false, "/": false, "/api": false,
		"/x/../livez": false, "//livez": false,
	} {
		_, err := a.Authenticate(httptest.NewRequest("GET", path, nil))
		if ok != (err == nil) || err != nil && !errors.Is(err, errNoProof) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	a, _, clients := proxied(t, func(c *Config) { c.Metrics, c.NoAnonymous = NewMetrics(registry), true })
	for _, r := range []*http.Request{
		withCertificates(clients.sign(t, pkix.Name{CommonName: "jane@example.com"}, nil)),
		withCertificates(clients.sign(t, pkix.Name{CommonName: "kubelet"}, nil)),
		withCertificates(clients.sign(t, pkix.Name{CommonName: "jane"}, nil)),
		withHeader(httptest.NewRequest("GET", "/", nil), "Authorization", "Bearer x"),
		httptest.NewRequest("GET", "/", nil),
	} {
		_, _ = a.Authenticate(r)
	}
	got := map[string]float64{}
	families, err := registry.Gather()
	must(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = amount(m)
		}
	}
	for name, want := range map[string]float64{
		"authentication_attempts success": 3, "authentication_attempts failure": 1, "authentication_attempts error": 1,
		"authenticated_user_requests email_id": 1, "authenticated_user_requests kubelet": 1,
		"authenticated_user_requests other": 1, "authenticated_user_requests admin": 0,
		"authentication_duration_seconds success": 3, "authentication_duration_seconds error": 1,
		"apiserver_client_certificate_expiration_seconds": 3,
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s is %v (%v), want %v", name, value, ok, want)
		}
	}
}

func amount(m *dto.Metric) float64 {
	if h := m.GetHistogram(); h != nil {
		return float64(h.GetSampleCount())
	}
	return m.GetCounter().GetValue()
}
