package aggregation_test

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/bowsprit/bowsprit"
)

// outside returns an address of this machine outside the loopback interface, since EndpointSlices reject loopback
// addresses.
func outside(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if ip := a.(*net.IPNet).IP.To4(); ip != nil && ip.IsGlobalUnicast() {
			return ip.String()
		}
	}
	t.Skip("this machine has no address but that of the loopback interface")
	return ""
}

// TestEndpoints sends requests to a service with two endpoints, one of which is ready but unreachable: each request
// reaches the other one, with its body.
func TestEndpoints(t *testing.T) {
	c := start(t)
	ip := outside(t)
	b := &backend{resources: flunders, group: group, handler: func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}}
	pair, ca := certificate(t, "api.default.svc")
	b.ca = ca
	b.Server = httptest.NewUnstartedServer(b)
	b.Listener.Close()
	var err error
	if b.Listener, err = net.Listen("tcp", ip+":0"); err != nil {
		t.Fatal(err)
	}
	b.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	b.StartTLS()
	t.Cleanup(b.Close)
	dead, err := net.Listen("tcp", ip+":0")
	if err != nil {
		t.Fatal(err)
	}
	dead.Close()
	c.must("POST", "/api/v1/namespaces/default/services",
		`{"metadata":{"name":"api"},"spec":{"ports":[{"name":"https","port":443}]}}`)
	b.port = 443
	c.register(b, "")
	for i, l := range []net.Listener{b.Listener, dead} {
		c.must("POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", fmt.Sprintf(
			`{"metadata":{"name":"api-%d","labels":{"kubernetes.io/service-name":"api"}},"addressType":"IPv4",
			"ports":[{"name":"https","port":%d}],"endpoints":[{"addresses":[%q],"conditions":{"ready":true}}]}`,
			i, l.Addr().(*net.TCPAddr).Port, ip))
	}
	c.available()
	for i := range 40 {
		body := fmt.Sprintf(`{"number":%d}`, i)
		if code, got := c.do("POST", anyone, body); code != 200 || got != body {
			t.Errorf("%d: %d %s", i, code, got)
		}
	}
}

// TestProxyCertificate checks that the other server sees the client certificate of the flags, and the next one after
// the files change, despite existing connections.
func TestProxyCertificate(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")
	show := func() []byte {
		pair, ca := certificate(t, "client")
		key, err := x509.MarshalECPrivateKey(pair.PrivateKey.(*ecdsa.PrivateKey))
		if err != nil {
			t.Fatal(err)
		}
		for file, data := range map[string][]byte{
			keyFile: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key}), certFile: ca,
		} {
			if err := os.WriteFile(file+".new", data, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(file+".new", file); err != nil {
				t.Fatal(err)
			}
		}
		return pair.Certificate[0]
	}
	first := show()
	c := start(t, func(config *bowsprit.Config) {
		config.Aggregation.ProxyClientCertFile, config.Aggregation.ProxyClientKeyFile = certFile, keyFile
	})
	b := serveBackend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, base64.StdEncoding.EncodeToString(r.TLS.PeerCertificates[0].Raw))
	})
	c.service()
	c.register(b, "")
	c.available()
	if got := c.must("GET", anyone, ""); got != base64.StdEncoding.EncodeToString(first) {
		t.Errorf("the first certificate is not shown")
	}
	second := base64.StdEncoding.EncodeToString(show())
	for c.must("GET", anyone, "") != second { // it is reread soon
		if t.Context().Err() != nil {
			t.Fatal("the second certificate is not shown")
		}
	}
}
