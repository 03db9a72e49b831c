package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

// connectProxy is an HTTP CONNECT proxy, on a socket or over TCP, with or without TLS.
type connectProxy struct {
	network, address string
	tls              *tls.Config // nil for none
}

// newConnectProxy returns the proxy at a URL. Its files are read once, as kube-apiserver does.
func newConnectProxy(t *apiserver.TCPTransport) (*connectProxy, error) {
	where, err := url.Parse(t.URL)
	if err != nil {
		return nil, fmt.Errorf("invalid proxy server url %q: %w", t.URL, err)
	}
	p := &connectProxy{network: "tcp", address: where.Host}
	if !strings.HasPrefix(t.URL, "https://") {
		return p, nil
	}
	f := t.TLSConfig
	if f == nil {
		return nil, errors.New("TLSConfig must be present when using HTTPS")
	}
	pair, err := tls.LoadX509KeyPair(f.ClientCert, f.ClientKey)
	if err != nil {
		return nil, fmt.Errorf("failed to read key pair %s & %s, got %w", f.ClientCert, f.ClientKey, err)
	}
	p.tls = &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ServerName: f.TLSServerName,
	}
	if f.CABundle != "" {
		pem, err := os.ReadFile(f.CABundle)
		if err != nil {
			return nil, fmt.Errorf("failed to read cert file %s, got %w", f.CABundle, err)
		}
		p.tls.RootCAs = x509.NewCertPool()
		if !p.tls.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("failed to append CA cert to the cert pool")
		}
	}
	return p, nil
}

func (p *connectProxy) labels() (protocol, transport string) {
	if p.network == "unix" {
		return "http_connect", "uds"
	}
	return "http_connect", "tcp"
}

func (p *connectProxy) dial(ctx context.Context, address string) (conn net.Conn, failed string, err error) {
	dialer := &net.Dialer{KeepAlive: keepAlive}
	if p.tls != nil {
		conn, err = (&tls.Dialer{NetDialer: dialer, Config: p.tls}).DialContext(ctx, p.network, p.address)
	} else {
		conn, err = dialer.DialContext(ctx, p.network, p.address)
	}
	if err != nil {
		return nil, stageConnect, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	err = p.ask(conn, address)
	if !stop() { // the deadline may be set at any time
		err = fmt.Errorf("CONNECT to %s via proxy %s: %w", address, p.address, context.Cause(ctx))
	}
	if err != nil {
		_ = conn.Close()
		return nil, stageProxy, err
	}
	return conn, "", nil
}

// ask requests a connection to an address from the proxy.
func (p *connectProxy) ask(conn net.Conn, address string) error {
	// Kubernetes' text, to the byte: some proxies accept nothing else.
	_, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", address)
	if err != nil {
		return fmt.Errorf("writing CONNECT to %s via proxy %s failed: %w", address, p.address, err)
	}
	// A proxy's headers have an end, and are in memory until then (go.dev/issue/74633).
	in := bufio.NewReader(io.LimitReader(conn, foreign.MaxHeader))
	answer, err := http.ReadResponse(in, nil)
	switch {
	case err != nil:
		return fmt.Errorf("reading HTTP response from CONNECT to %s via proxy %s failed: %w", address, p.address,
			foreign.Error(err))
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("proxy error from %s while dialing %s, code %d: %v", p.address, address, answer.StatusCode,
			foreign.Text(answer.Status))
	case in.Buffered() > 0: // the client speaks first in TLS, so the far end has nothing to send yet
		return fmt.Errorf("unexpected %d bytes of buffered data from CONNECT proxy %q", in.Buffered(), p.address)
	}
	return nil
}
