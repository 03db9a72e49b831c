package webhook

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// hook is a webhook with a certificate for the given names, and the authority that signed it.
type hook struct {
	*httptest.Server
	ca          []byte
	connections atomic.Int32
}

func newHook(t *testing.T, answer http.HandlerFunc, names ...string) *hook {
	t.Helper()
	h := &hook{}
	var cert tls.Certificate
	h.ca, cert = certify(t, names...)
	h.Server = httptest.NewUnstartedServer(answer)
	h.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequestClientCert}
	h.EnableHTTP2 = true
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			h.connections.Add(1)
		}
	}
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

// certify returns an authority, PEM, and a certificate signed by it.
func certify(t *testing.T, names ...string) ([]byte, tls.Certificate) {
	t.Helper()
	make := func(template, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if parent == nil {
			parent, by = template, key
		}
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return cert, key
	}
	ca, caKey := make(&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hook-ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, name)
		}
	}
	cert, key := make(leaf, ca, caKey)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}),
		tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func echo(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }

func TestCall(t *testing.T) {
	var got *http.Request
	h := newHook(t, func(w http.ResponseWriter, r *http.Request) { got = r; echo(w, r) }, "127.0.0.1")
	c := New(Options{})
	defer c.Close()
	for range 3 {
		answer, err := c.Call(t.Context(), Target{URL: h.URL + "/convert", CABundle: append([]byte(" \n"), h.ca...)},
			[]byte(`{"a":1}`))
		if err != nil || string(answer) != `{"a":1}` {
			t.Fatalf("got %q, %v", answer, err)
		}
	}
	if got.URL.String() != "/convert?timeout=30s" || got.ProtoMajor != 2 ||
		got.Header.Get("Content-Type") != "application/json" || got.Method != http.MethodPost {
		t.Errorf("the webhook saw %s %s %s %v", got.Method, got.URL, got.Proto, got.Header)
	}
	if n := h.connections.Load(); n != 1 {
		t.Errorf("three calls took %d connections", n)
	}
}

func TestServiceIsResolvedAtEachCall(t *testing.T) {
	name := "hook.ns.svc"
	one, two := newHook(t, echo, name), newHook(t, echo, name)
	var at *hook
	c := New(Options{Resolve: func(_ context.Context, namespace, service string, port int32) (string, error) {
		if namespace != "ns" || service != "hook" || port != 443 {
			t.Errorf("asked for %s/%s:%d", namespace, service, port)
		}
		if at == nil {
			return "", apierrors.NewServiceUnavailable(`no endpoints available for service "hook"`)
		}
		return at.Listener.Addr().String(), nil
	}})
	defer c.Close()
	target := Target{Service: &Service{Namespace: "ns", Name: "hook", Path: "/x"}, Timeout: 10 * time.Second}
	for _, at = range []*hook{one, two, one} {
		target.CABundle = at.ca
		if _, err := c.Call(t.Context(), target, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if one.connections.Load() != 1 || two.connections.Load() != 1 {
		t.Errorf("%d and %d connections", one.connections.Load(), two.connections.Load())
	}
	at = nil
	_, err := c.Call(t.Context(), target, []byte("{}"))
	if want := `Post "https://hook.ns.svc:443/x?timeout=10s": no endpoints available for service "hook"`; err == nil ||
		err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestFailures(t *testing.T) {
	answer := func(code int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
		want   string // URL stands for the webhook's address
	}{
		{"empty", answer(200, "application/json", ""),
			"0-length response with status code: 200 and content type: application/json"},
		{"not found", answer(404, "text/plain", "404 page not found"),
			"the server could not find the requested resource"},
		{"error in text", answer(500, "text/plain", "no way\n"),
			`an error on the server ("no way") has prevented the request from succeeding`},
		{"error in JSON", answer(500, "application/json", `{"no":"way"}`),
			`an error on the server ("unknown") has prevented the request from succeeding`},
		{"status",
			answer(403, "application/json",
				`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not you","code":403}`), "not you"},
		{"odd type", answer(200, ";;", `{}`), "Internal error occurred: mime: no media type"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusTemporaryRedirect)
		}, "the server responded with the status code 307 but did not return more information"},
		{"declared too long",
			func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "104857600") },
			"unexpected error when reading response body. Please retry. Original error: the answer exceeds the limit of 5242888 bytes"},
		{"too long", func(w http.ResponseWriter, _ *http.Request) {
			for range 100 {
				if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
					return
				}
			}
		},
			"unexpected error when reading response body. Please retry. Original error: the answer exceeds the limit of 5242888 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHook(t, test.answer, "127.0.0.1")
			c := New(Options{})
			defer c.Close()
			_, err := c.Call(t.Context(), Target{URL: h.URL, CABundle: h.ca}, []byte("{}"))
			if err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestTrust(t *testing.T) {
	h, named := newHook(t, echo, "127.0.0.1"), newHook(t, echo, "elsewhere.example")
	stranger, _ := certify(t, "127.0.0.1")
	c := New(Options{})
	defer c.Close()
	for _, test := range []struct {
		name   string
		target Target
		want   string
	}{
		{"unknown authority", Target{URL: h.URL, CABundle: stranger},
			"tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		{"system roots", Target{URL: h.URL},
			"tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		{"wrong name", Target{URL: named.URL, CABundle: named.ca},
			"tls: failed to verify certificate: x509: cannot validate certificate for 127.0.0.1"},
		{"no authority", Target{URL: h.URL, CABundle: []byte("x")},
			"unable to load root certificates: unable to parse bytes as PEM block"},
		{"nothing", Target{}, "webhook configuration must have either service or URL"},
	} {
		_, err := c.Call(t.Context(), test.target, []byte("{}"))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
	}
}

func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	for _, beforeHanging := range []string{"", "{"} {
		h := newHook(t, func(w http.ResponseWriter, r *http.Request) {
			if beforeHanging != "" {
				_, _ = io.WriteString(w, beforeHanging)
				_ = http.NewResponseController(w).Flush()
			}
			select {
			case <-r.Context().Done():
			case <-release:
			}
		}, "127.0.0.1")
		c := New(Options{})
		defer c.Close()
		_, err := c.Call(t.Context(), Target{URL: h.URL, CABundle: h.ca, Timeout: 50 * time.Millisecond}, []byte("{}"))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %q: got %v", beforeHanging, err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	var calls atomic.Int32
	h := newHook(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) < 3 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		echo(w, r)
	}, "127.0.0.1")
	c := New(Options{})
	defer c.Close()
	if answer, err := c.Call(t.Context(), Target{URL: h.URL, CABundle: h.ca}, []byte("{}")); err != nil ||
		string(answer) != "{}" || calls.Load() != 3 {
		t.Errorf("got %q, %v after %d calls", answer, err, calls.Load())
	}
}

func TestEndpointsAreForgotten(t *testing.T) {
	var s endpoints
	start := time.Now()
	key := func(i int) endpointKey { return endpointKey{address: string(rune('a' + i))} }
	make := func() (*endpoint, error) { return &endpoint{client: &http.Client{}}, nil }
	for i := range maxEndpoints + 5 {
		if _, err := s.get(key(i), start.Add(time.Duration(i)), make); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.mu.byKey) != maxEndpoints || s.mu.byKey[key(0)] != nil {
		t.Errorf("%d endpoints", len(s.mu.byKey))
	}
	if _, err := s.get(key(0), start.Add(2*unusedFor), make); err != nil || len(s.mu.byKey) != 1 {
		t.Errorf("%d endpoints after a long time, %v", len(s.mu.byKey), err)
	}
}
