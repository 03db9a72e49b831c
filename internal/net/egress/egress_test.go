package egress

import (
	"crypto/tls"
	"crypto/x509"
	"io"
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
