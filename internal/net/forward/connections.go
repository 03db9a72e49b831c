// Package forward passes requests of clients on to other servers, which are told who has sent them: what aggregated
// APIs and replicas of other releases have in common.
//
// Connections are those to one such server, or to several that are known by the same certificates. Rewrite makes the
// request of a client that of a front proxy, Send goes on to another address where one is not reached. All are safe
// for concurrent use.
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

// Connections are made when they are needed, and kept for a while. When the certificate that this server shows there
// becomes another one, requests are sent on new ones.
type Connections struct {
	config      *tls.Config
	dial        egress.Dial
	certificate func() *tls.Certificate

	current atomic.Pointer[pair]
	mu      sync.Mutex // held by who replaces current
}

// pair are the connections on which this server shows one certificate.
type pair struct {
	shown  *tls.Certificate
	shared *http.Transport
	// single speaks HTTP/1 only, for requests that have their connection alone.
	single *http.Transport
}

func (p *pair) closeIdle() {
	p.shared.CloseIdleConnections()
	p.single.CloseIdleConnections()
}

// NewConnections returns connections that dial opens, of which there are none yet. config says how the other server
// proves itself; certificate returns what this one shows, nil for nothing.
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

// UnreachedError says that a connection could not be opened, so that nothing has been sent.
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
	// What the client accepts is what it gets.
	p.shared.DisableCompression, p.single.DisableCompression = true, true
	p.single.ForceAttemptHTTP2, p.single.HTTP2 = false, nil
	p.single.TLSClientConfig.NextProtos = []string{"http/1.1"}
	return p
}

// Shared returns what sends requests that share connections. Requests that are under way on those with an older
// certificate end there.
func (c *Connections) Shared() http.RoundTripper { return c.today().shared }

// For returns what sends a request: as Shared, or on a connection that is for it alone until it is answered, with
// HTTP/1, as an upgrade needs it.
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

// CloseIdle closes connections that nothing is sent on.
func (c *Connections) CloseIdle() { c.current.Load().closeIdle() }
