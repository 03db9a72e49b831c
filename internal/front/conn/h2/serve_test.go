package h2_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/front/conn"
)

// patience limits the time of a test on a busy machine.
const patience = time.Minute

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// server is a conn.Server on a port of its own.
type server struct {
	*conn.Server
	address string
	served  chan error
}

// serve starts a server of HTTP/2, ours or Go's.
func serve(t testing.TB, direct bool, h http.HandlerFunc) *server {
	t.Helper()
	return serveOn(t, listen(t), direct, h)
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := conn.Listen(t.Context(), "127.0.0.1:0")
	must(t, err)
	return ln
}

// narrow is a listener of connections for which the kernel holds little.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return c, err
}

func serveOn(t testing.TB, ln net.Listener, direct bool, h http.HandlerFunc) *server {
	t.Helper()
	return start(t, ln, direct, func() {}, h)
}

// serveSending starts our server. It calls sending before it sends.
func serveSending(t testing.TB, sending func(), h http.HandlerFunc) *server {
	t.Helper()
	return start(t, listen(t), true, sending, h)
}

func start(t testing.TB, ln net.Listener, direct bool, sending func(), h http.HandlerFunc) *server {
	t.Helper()
	certificates, err := pki.Open(pki.Config{})
	must(t, err)
	s := &server{address: ln.Addr().String(), served: make(chan error, 1)}
	s.Server = conn.New(conn.Config{
		Handler: h, Hijacked: &conn.Hijacked{}, TLS: certificates.TLSConfig(), Context: context.Background(),
		HandshakeFailed: func() {}, Sending: sending, DirectHTTP2: direct, Log: slog.New(slog.DiscardHandler),
	})
	go func() { s.served <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Shutdown(ctx)
		must(t, <-s.served)
	})
	return s
}

// dial opens a connection for HTTP/2.
func (s *server) dial(t testing.TB) *tls.Conn {
	t.Helper()
	c, err := tls.Dial("tcp", s.address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	must(t, c.SetDeadline(time.Now().Add(patience)))
	return c
}

// client returns Go's client.
func (s *server) client(t testing.TB) *http.Client {
	t.Helper()
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

func (s *server) url(path string) string { return "https://" + s.address + path }

// raw is a connection on which the test writes and reads frames itself.
type raw struct {
	net.Conn
	*http2.Framer
}

// raw opens a connection and exchanges the settings.
func (s *server) raw(t testing.TB, settings ...http2.Setting) *raw {
	t.Helper()
	c := s.dial(t)
	_, err := c.Write([]byte(http2.ClientPreface))
	must(t, err)
	r := &raw{c, http2.NewFramer(c, c)}
	r.AllowIllegalWrites = true
	must(t, r.WriteSettings(settings...))
	return r
}
