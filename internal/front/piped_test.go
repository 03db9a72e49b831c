package front

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/bowsprit/bowsprit/internal/auth/authn"
	"github.com/bowsprit/bowsprit/internal/auth/pki"
)

// pipes is a listener with connections that are pipes, so that a test's clock can stand still.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.conns <- server
	return client, nil
}

// piped is a server with clients in a bubble of package synctest, with a clock that advances only while every goroutine
// waits: the load of the machine does not matter.
type piped struct {
	*Server
	pki    *pki.PKI
	pipes  *pipes
	served chan error
}

func runPiped(t *testing.T, resources Handler, change func(*Config)) *piped {
	t.Helper()
	certificates, err := pki.Open(pki.Config{})
	must(t, err)
	s := &piped{pki: certificates, pipes: newPipes(), served: make(chan error, 1)}
	s.Server = newServer(t, resources, func(c *Config) {
		c.Authenticator = authn.New(authn.Config{ClientRoots: certificates.ClientRoots})
		c.TLS = certificates.TLSConfig()
		if change != nil {
			change(c)
		}
	})
	go func() { s.served <- s.Serve(s.pipes) }()
	return s
}

// stop ends the goroutines that the bubble waits for at its end.
func (s *piped) stop(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = s.Shutdown(ctx)
	must(t, <-s.served)
}

// config is that of the administrator's connections.
func (s *piped) config(t *testing.T) *tls.Config {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost"}
	config.RootCAs.AppendCertsFromPEM(s.pki.ServerCA())
	certificate, err := tls.X509KeyPair(s.pki.Admin())
	must(t, err)
	config.Certificates = []tls.Certificate{certificate}
	return config
}

// dialAs opens a connection for a protocol of ALPN as the administrator.
func (s *piped) dialAs(t *testing.T, protocol string) *tls.Conn {
	t.Helper()
	raw, err := s.pipes.dial(t.Context(), "", "")
	must(t, err)
	config := s.config(t)
	config.NextProtos = []string{protocol}
	conn := tls.Client(raw, config)
	must(t, conn.Handshake())
	return conn
}

func (s *piped) client(t *testing.T, protocol int) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: s.config(t), DialContext: s.pipes.dial, Protocols: &http.Protocols{}}
	transport.Protocols.SetHTTP1(protocol == 1)
	transport.Protocols.SetHTTP2(protocol == 2)
	return &http.Client{Transport: transport}
}
