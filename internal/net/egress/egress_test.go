package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestTransport reaches a server over HTTP/2, by the connection that it has.
func TestTransport(t *testing.T) {
	t.Parallel()
	addresses := map[string]bool{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addresses[r.RemoteAddr] = true
		_, _ = io.WriteString(w, r.Proto)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	transport := Transport(new(Egress).Dial(Cluster), &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	defer transport.CloseIdleConnections()
	for range 3 {
		resp, err := (&http.Client{Transport: transport}).Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != "HTTP/2.0" {
			t.Errorf("%q, %v", body, err)
		}
	}
	if len(addresses) != 1 {
		t.Errorf("connections from %v", addresses)
	}
}

// TestDivert checks that only connections within the cluster are diverted, and only to addresses with a Dial.
func TestDivert(t *testing.T) {
	t.Parallel()
	own := errors.New("diverted")
	e := &Egress{selected: map[Purpose]Dial{}}
	elsewhere := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("dialled") }
	for _, p := range []Purpose{Cluster, ControlPlane, Etcd} {
		e.selected[p] = elsewhere
	}
	e.Divert(func(address string) Dial {
		if address != "10.0.0.1:80" {
			return nil
		}
		return func(context.Context, string, string) (net.Conn, error) { return nil, own }
	})
	for p, want := range map[Purpose]bool{Cluster: true, ControlPlane: false, Etcd: false} {
		for address, one := range map[string]bool{"10.0.0.1:80": true, "10.0.0.2:80": false} {
			_, err := e.Dial(p)(t.Context(), "tcp", address)
			if got := errors.Is(err, own); got != (want && one) {
				t.Errorf("%s %s: %v", p, address, err)
			}
		}
	}
}
