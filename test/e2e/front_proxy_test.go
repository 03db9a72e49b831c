package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// startFrontProxy starts a proxy that names every client alice of the group dev, and presents by's certificate to the
// server, or none. kubectl connects to it without TLS, and so presents no certificate.
func startFrontProxy(t *testing.T, server *process, by *pair) string {
	t.Helper()
	config := server.config(t)
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CAData)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	if by != nil {
		// Shown whichever authorities the server names, as an attacker would.
		own := &tls.Certificate{Certificate: [][]byte{by.cert.Raw}, PrivateKey: by.key}
		transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return own, nil
		}
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Transport: transport, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("X-Remote-User", "alice")
			r.Out.Header.Set("X-Remote-Group", "dev")
			r.Out.Header.Set("X-Remote-Extra-Reason", "tested")
		},
	})
	t.Cleanup(func() {
		proxy.Close()
		transport.CloseIdleConnections()
	})
	return proxy.URL
}

// TestFrontProxy runs kubectl through proxies that authenticate its users, each case of the page: the right authority
// and name, another name, another authority, no certificate.
func TestFrontProxy(t *testing.T) {
	t.Parallel()
	var none *pair
	clients, proxies := none.sign(t, "clients"), none.sign(t, "proxies")
	server := startServer(t, "--ephemeral", "--client-ca-file="+clients.certFile,
		"--requestheader-client-ca-file="+proxies.certFile, "--requestheader-allowed-names=front",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-")
	kubectl(t, server, nil, "create", "role", "reader", "--verb=get,list", "--resource=configmaps")
	kubectl(t, server, nil, "create", "rolebinding", "reader", "--role=reader", "--group=dev")
	const output = "-o=jsonpath={.status.userInfo.username} {.status.userInfo.groups} {.status.userInfo.extra.reason}"
	for _, tc := range []struct {
		name         string
		by           *pair
		whoami, maps string // beginnings of kubectl's output
	}{
		{"right authority and name", proxies.sign(t, "front"), `alice ["dev","system:authenticated"] ["tested"]`,
			`{"apiVersion":"v1","items":[{"data":{"ca.crt":`},
		{"wrong name", proxies.sign(t, "back"), "error: You must be logged in", "error: You must be logged in"},
		{"wrong authority", none.sign(t, "proxies").sign(t, "front"), "error: You must be logged in",
			"error: You must be logged in"},
		{"no certificate", nil, "error: the selfsubjectreviews API is not enabled in the cluster or you do not have " +
			"permission to call it",
			`Error from server (Forbidden): configmaps is forbidden: User "system:anonymous" cannot list resource`},
		{"a client of the proxy's name", clients.sign(t, "front"), `front ["system:authenticated"]`,
			`Error from server (Forbidden): configmaps is forbidden: User "front" cannot list resource`},
	} {
		address := startFrontProxy(t, server, tc.by)
		through := func(args ...string) string {
			cmd := exec.CommandContext(bounded(t, commandLimit), filepath.Join(binaries, "kubectl"),
				append(args, "--server="+address, "--cache-dir="+filepath.Join(t.TempDir(), "cache"))...)
			cmd.Env = append(os.Environ(), "KUBECONFIG=/nonexistent", "HOME="+t.TempDir())
			out, _ := cmd.CombinedOutput()
			return string(out)
		}
		if got := through("auth", "whoami", output); !strings.HasPrefix(got, tc.whoami) {
			t.Errorf("%s: auth whoami: got %q, want %q", tc.name, got, tc.whoami)
		}
		if got := through("get", "--raw", "/api/v1/namespaces/default/configmaps"); !strings.HasPrefix(got, tc.maps) {
			t.Errorf("%s: get configmaps: got %q, want %q", tc.name, got, tc.maps)
		}
	}
}
