package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/bowsprit/bowsprit/internal/testing/authority"
)

func listenUnix(t *testing.T) (net.Listener, string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "p.socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	return listener, socket
}

// open returns a Dial for the cluster over a transport.
func open(t *testing.T, transport *apiserver.Transport) Dial {
	t.Helper()
	c := &Configuration{EgressSelections: []apiserver.EgressSelection{{Name: "cluster",
		Connection: apiserver.Connection{ProxyProtocol: apiserver.ProtocolHTTPConnect, Transport: transport},
	}}}
	if errs := Validate(c); len(errs) > 0 {
		t.Fatal(errs)
	}
	e, err := Open(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e.Dial(Cluster)
}

func checkEcho(t *testing.T, dial Dial) {
	t.Helper()
	conn, err := dial(t.Context(), "tcp", echo(t))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "hello")
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestConnect goes through proxies on a socket, over TCP, and over TLS with certificates on both sides.
func TestConnect(t *testing.T) {
	t.Parallel()
	listener, socket := listenUnix(t)
	startConnect(t, listener, forward)
	checkEcho(t, open(t, &apiserver.Transport{UDS: &apiserver.UDSTransport{UDSName: socket}}))

	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	startConnect(t, plain, forward)
	checkEcho(t, open(t, &apiserver.Transport{TCP: &apiserver.TCPTransport{URL: "http://" + plain.Addr().String()}}))

	a := authority.New(t)
	secure, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{a.Pair(t, "proxy.example")}, ClientCAs: a.Pool,
		ClientAuth: tls.RequireAndVerifyClientCert,
	})
	if err != nil {
		t.Fatal(err)
	}
	startConnect(t, secure, forward)
	ca, cert, key := a.Files(t, "kube-apiserver")
	over := &apiserver.TCPTransport{URL: "https://" + secure.Addr().String(), TLSConfig: &apiserver.TLSConfig{
		CABundle: ca, ClientCert: cert, ClientKey: key,
	}}
	_, err = open(t, &apiserver.Transport{TCP: over})(t.Context(), "tcp", "10.0.0.1:1")
	if err == nil || !strings.Contains(err.Error(), "doesn't contain any IP SANs") {
		t.Errorf("the proxy has a certificate for another name: %v", err)
	}
	over.TLSConfig.TLSServerName = "proxy.example"
	checkEcho(t, open(t, &apiserver.Transport{TCP: over}))
}

// TestConnectErrors checks that errors contain the proxy's text.
func TestConnectErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ answer, want string }{
		{"HTTP/1.1 403 Forbidden\r\n\r\n", "proxy error from SOCKET while dialing a.example:443, code 403: 403 Forbidden"},
		{"HTTP/1.1 200 OK\r\n\r\nsurprise", `unexpected 8 bytes of buffered data from CONNECT proxy "SOCKET"`},
		{"", "reading HTTP response from CONNECT to a.example:443 via proxy SOCKET failed: unexpected EOF"},
		{"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n",
			"reading HTTP response from CONNECT to a.example:443 via proxy SOCKET failed: unexpected EOF"},
	} {
		listener, socket := listenUnix(t)
		var target string
		startConnect(t, listener, func(w io.Writer, r *http.Request) net.Conn {
			target = r.Method + " " + r.RequestURI
			_, _ = io.WriteString(w, test.answer)
			return nil
		})
		dial := open(t, &apiserver.Transport{UDS: &apiserver.UDSTransport{UDSName: socket}})
		_, err := dial(t.Context(), "tcp", "a.example:443")
		if err == nil || strings.ReplaceAll(err.Error(), socket, "SOCKET") != test.want {
			t.Errorf("%.30q: %v, want %s", test.answer, err, test.want)
		}
		if target != "CONNECT a.example:443" {
			t.Errorf("asked for %s", target)
		}
	}
}

// TestConnectEndsWithContext checks that a silent proxy delays a dial no longer than its context.
func TestConnectEndsWithContext(t *testing.T) {
	t.Parallel()
	listener, socket := listenUnix(t)
	gone := make(chan error, 1)
	accepted := make(chan struct{})
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		close(accepted)
		defer conn.Close()
		_, err = io.Copy(io.Discard, conn)
		gone <- err
	}()
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-accepted
		cancel()
	}()
	_, err := open(t, &apiserver.Transport{UDS: &apiserver.UDSTransport{UDSName: socket}})(ctx, "tcp", "a.example:443")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Error("the connection to the proxy is still there")
	}
}
