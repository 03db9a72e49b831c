package front

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/bowsprit/bowsprit/internal/object/codec"
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

func (s *Server) newHTTPServer() *http.Server {
	base := context.Background()
	if s.config.CBOR {
		base = codec.WithCBOR(base)
	}
	srv := &http.Server{
		BaseContext:       func(net.Listener) context.Context { return base },
		Handler:           s,
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
		if err := serveHTTP2(srv, &s.unasked); err != nil {
			panic(err) // it is about cipher suites that cannot carry HTTP/2, which who configures them refuses
		}
	}
	return srv
}

// connectionLog receives what net/http has to say. Handshakes that fail are the client's matter: counted, not logged.
type connectionLog struct{ s *Server }

func (l connectionLog) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	if strings.Contains(string(line), "http: TLS handshake error") {
		l.s.metrics.handshakes.Inc()
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

// Shutdown stops in order: readyz fails and watches end, no new connection or request is taken, running requests
// finish. When ctx ends before they have, their connections are closed and the error wraps ctx's.
func (s *Server) Shutdown(ctx context.Context) error {
	s.close()
	s.unasked.close()
	err := s.http.Shutdown(ctx)
	if err == nil {
		err = s.hijacked.wait(ctx)
	}
	if err != nil {
		_ = s.http.Close() // the error is about listeners that Shutdown has closed
		s.hijacked.close()
		return fmt.Errorf("requests were still running: %w", err)
	}
	return nil
}
