// Package forward passes requests of clients on to other servers as a front proxy, for aggregated APIs and for replicas
// of other releases.
//
// Connections are the connections to one such server, or to several that are verified by the same certificates. Rewrite
// turns a client's request into a front proxy's, and Send retries at another address if one is unreachable. All are
// safe for concurrent use.
package forward

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/bowsprit/bowsprit/internal/net/egress"
)

// Connections are opened on demand, and kept for a while. When the client certificate changes, requests are sent on new
// ones.
type Connections struct {
	config      *tls.Config
	dial        egress.Dial
	certificate func() *tls.Certificate

	current atomic.Pointer[pair]
	mu      sync.Mutex // held to replace current
}

// pair are the transports for one client certificate.
type pair struct {
	shown  *tls.Certificate
	shared *http.Transport
	// single uses only HTTP/1, for requests that have their own connection.
	single *http.Transport
}

func (p *pair) closeIdle() {
	p.shared.CloseIdleConnections()
	p.single.CloseIdleConnections()
}

// NewConnections returns connections that dial opens on demand. config verifies the other server; certificate returns
// the client certificate, nil for none.
func NewConnections(config *tls.Config, dial egress.Dial, certificate func() *tls.Certificate) *Connections {
	c := &Connections{config: config, certificate: certificate}
	c.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, &UnreachedError{err}
		}
		return conn, nil
	}
	c.current.Store(c.connect(certificate()))
	return c
}

// UnreachedError is the error if no connection could be opened, so that nothing was sent.
type UnreachedError struct{ error }

// Unwrap returns why.
func (e *UnreachedError) Unwrap() error { return e.error }

func (c *Connections) connect(shown *tls.Certificate) *pair {
	config := c.config.Clone()
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if shown != nil {
			return shown, nil
		}
		return &tls.Certificate{}, nil
	}
	p := &pair{
		shown: shown, shared: egress.Transport(c.dial, config), single: egress.Transport(c.dial, config.Clone()),
	}
	// The client gets the encoding that it accepts.
	p.shared.DisableCompression, p.single.DisableCompression = true, true
	p.single.ForceAttemptHTTP2, p.single.HTTP2 = false, nil
	p.single.TLSClientConfig.NextProtos = []string{"http/1.1"}
	return p
}

// Shared returns the transport for requests that share connections. Requests in progress with an older certificate end
// on their connections.
func (c *Connections) Shared() http.RoundTripper { return c.today().shared }

// For returns the transport for a request: Shared, or if alone is set an exclusive HTTP/1 connection, as an upgrade
// needs it.
func (c *Connections) For(alone bool) http.RoundTripper {
	if alone {
		return c.today().single
	}
	return c.Shared()
}

func (c *Connections) today() *pair {
	p, certificate := c.current.Load(), c.certificate()
	if p.shown == certificate {
		return p
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p = c.current.Load(); p.shown == certificate {
		return p
	}
	next := c.connect(certificate)
	c.current.Store(next)
	p.closeIdle()
	return next
}

// CloseIdle closes idle connections.
func (c *Connections) CloseIdle() { c.current.Load().closeIdle() }
