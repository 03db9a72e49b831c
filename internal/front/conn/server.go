// Package conn is where connections come in: listeners, TLS, HTTP/1 and HTTP/2, up to the requests that they carry.
//
// It knows HTTP and nothing of Kubernetes. A Server runs net/http with what a server of many small and some endless
// answers needs beside it: frames that go out together (gatherer, corked), a farewell that takes no second (farewell),
// connections without a request that end with the server (unasked), connections that handlers have taken over
// (Hijacked), bodies that a handler leaves unread (Body, drain), and stacks that grow once (roomy).
//
// A Server and a Hijacked are safe for concurrent use. A Body belongs to the goroutine of its request.
package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// ErrPortInUse means that another process listens on an address.
var ErrPortInUse = errors.New("in use by another process")

// Listen returns a listener for the TCP address. Its error is one line that says what to do.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig // with TCP keep-alive, so that dead clients are noticed
	ln, err := config.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is %w", address, ErrPortInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	return ln, nil
}

// Config is what a Server is made from. Fields without a comment are required.
type Config struct {
	Handler http.Handler
	// Hijacked has the connections that Handler has taken over.
	Hijacked *Hijacked

	TLS     *tls.Config     // nil serves without TLS (tests)
	Context context.Context // what the contexts of all requests come from
	// HandshakeFailed is called for each TLS handshake that failed.
	HandshakeFailed func()
	// Sending is called before answers, or parts of some, are sent over HTTP/2.
	Sending func()
	Log     *slog.Logger
}

// Server hands the requests of connections to a handler.
type Server struct {
	config  Config
	http    *http.Server
	unasked unasked // connections without a request
}

// New returns a Server.
func New(c Config) *Server {
	s := &Server{config: c}
	s.http = s.newHTTPServer()
	return s
}

func (s *Server) newHTTPServer() *http.Server {
	srv := &http.Server{
		BaseContext:       func(net.Listener) context.Context { return s.config.Context },
		Handler:           http.HandlerFunc(s.handle),
		TLSConfig:         s.config.TLS,
		MaxHeaderBytes:    1 << 20,
		ReadHeaderTimeout: 32 * time.Second,
		IdleTimeout:       90 * time.Second, // as long as Go's clients keep theirs
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 100, // what Go's clients assume; more would let one connection cause more work
			MaxReadFrameSize:     256 << 10,
			// A body of the largest size goes through without waiting for the window to open.
			MaxReceiveBufferPerStream:     3<<20 + 1<<16,
			MaxReceiveBufferPerConnection: 4<<20 - 1, // net/http takes no more
			// Connections of clients that vanished end within a minute, and with them their watches.
			SendPingTimeout: 45 * time.Second,
			PingTimeout:     15 * time.Second,
		},
		ErrorLog:  log.New(connectionLog{s}, "", 0),
		ConnState: s.unasked.follow,
	}
	if s.config.TLS != nil {
		if err := s.serveHTTP2(srv); err != nil {
			panic(err) // it is about cipher suites that cannot carry HTTP/2, which who configures them refuses
		}
	}
	return srv
}

// handle runs the handler, and reads what it has left of the body.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	s.config.Handler.ServeHTTP(w, r)
	drain(r)
}

// connectionLog receives what net/http has to say. Handshakes that fail are the client's matter: counted, not logged.
type connectionLog struct{ s *Server }

func (l connectionLog) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	if strings.Contains(string(line), "http: TLS handshake error") {
		l.s.config.HandshakeFailed()
		level = slog.LevelDebug
	}
	l.s.config.Log.Log(context.Background(), level, strings.TrimSpace(string(line)))
	return len(line), nil
}

// Serve answers the connections of ln until Shutdown, then returns nil. It closes ln.
func (s *Server) Serve(ln net.Listener) error {
	var err error
	if s.config.TLS != nil {
		err = s.http.ServeTLS(corks{ln}, "", "")
	} else {
		err = s.http.Serve(ln)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve: %w", err)
}

// Shutdown takes no new connection or request and waits for those that run. When ctx ends before they have, their
// connections are closed and the error wraps ctx's.
func (s *Server) Shutdown(ctx context.Context) error {
	s.unasked.close()
	err := s.http.Shutdown(ctx)
	if err == nil {
		err = s.config.Hijacked.wait(ctx)
	}
	if err != nil {
		_ = s.http.Close() // the error is about listeners that Shutdown has closed
		s.config.Hijacked.close()
		return fmt.Errorf("requests were still running: %w", err)
	}
	return nil
}
