// Package conn accepts connections: listeners, TLS, HTTP/1 and HTTP/2, up to their requests.
//
// It is independent of Kubernetes. A Server runs net/http with additions for many short and some endless responses:
// combined frames (gatherer, corked), a connection close that takes no second (farewell), connections without a request
// that end with the server (freshConns), connections taken over by handlers (Hijacked), unread bodies (Body, drain),
// and stacks that grow once (roomy).
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

// Listen returns a listener for the TCP address. Its error is one line that includes the remedy.
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

// Config configures a Server. Fields without a comment are required.
type Config struct {
	Handler http.Handler
	// Hijacked tracks the connections that Handler has taken over.
	Hijacked *Hijacked

	TLS     *tls.Config     // nil serves without TLS (tests)
	Context context.Context // parent of the contexts of all requests
	// HandshakeFailed is called for each TLS handshake that failed.
	HandshakeFailed func()
	// Sending is called before responses, or parts of them, are sent over HTTP/2.
	Sending func()
	// DirectHTTP2 serves HTTP/2 by package h2 instead of Go's server.
	DirectHTTP2 bool
	Log         *slog.Logger
}

// Server hands the requests of connections to a handler.
type Server struct {
	config     Config
	http       *http.Server
	freshConns freshConns // connections without a request
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
		IdleTimeout:       90 * time.Second, // as in Go's clients
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 100, // the assumption of Go's clients; more would let one connection cause more work
			MaxReadFrameSize:     256 << 10,
			// A body of the maximum size passes without waiting for the window to open.
			MaxReceiveBufferPerStream:     3<<20 + 1<<16,
			MaxReceiveBufferPerConnection: 4<<20 - 1, // net/http accepts no more
			// Connections of vanished clients end within a minute, and with them their watches.
			SendPingTimeout: 45 * time.Second,
			PingTimeout:     15 * time.Second,
		},
		ErrorLog:  log.New(connectionLog{s}, "", 0),
		ConnState: s.freshConns.follow,
	}
	if s.config.TLS != nil {
		serve := s.serveHTTP2
		if s.config.DirectHTTP2 {
			serve = s.serveDirect
		}
		if err := serve(srv); err != nil {
			panic(err) // only for cipher suites without HTTP/2, which validation of the configuration refuses
		}
	}
	return srv
}

// handle runs the handler, and then reads the rest of the body.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	s.config.Handler.ServeHTTP(w, r)
	drain(r)
}

// connectionLog receives the log of net/http. Failed handshakes are the client's problem: counted, not logged.
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

// Serve accepts connections on ln until Shutdown, then returns nil. It closes ln.
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

// Shutdown refuses new connections and requests, and waits for running requests. When ctx ends first, it closes their
// connections and returns an error that wraps ctx's.
func (s *Server) Shutdown(ctx context.Context) error {
	s.freshConns.close()
	err := s.http.Shutdown(ctx)
	if err == nil {
		err = s.config.Hijacked.wait(ctx)
	}
	if err != nil {
		_ = s.http.Close() // the error is about listeners, which Shutdown has closed
		s.config.Hijacked.close()
		return fmt.Errorf("requests were still running: %w", err)
	}
	return nil
}
