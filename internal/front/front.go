// Package front is where requests come in: it composes the connections (front/conn), the steps that every request
// passes (front/chain) and the handlers that answer it.
//
// It is the first package on a request's path and the last in import order: it knows who answers what (objects,
// discovery, documents, health, metrics) and nothing about how.
//
// A Server is safe for concurrent use. Shutdown may be called once.
package front

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/front/chain"
	"github.com/bowsprit/bowsprit/internal/front/conn"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// Config is what a Server is made from. Fields without a comment are required.
type Config struct {
	chain.Config // what the steps go by

	Resources Handler // requests for objects
	Discovery Handler // /api and /apis, down to the resources of a version
	OpenAPI   Handler // /openapi/...; may be nil
	// Figures are what /metrics shows. Nil shows all of Metrics.
	Figures prometheus.Gatherer
	// Elsewhere says who answers a request for which another server is there, nil for all others. May be nil.
	Elsewhere Elsewhere
	// Started is when the process began, which is told with metrics; zero is not told.
	Started time.Time
	// APIPaths returns the paths of groups and versions, which the root path lists with all others. May be nil.
	APIPaths func() []string
	// Paths are further non-resource paths. One that ends in a slash answers for everything below it too. May be nil.
	Paths map[string]Handler

	Checks []Check     // health; may be nil
	TLS    *tls.Config // nil serves without TLS (tests)

	// CBOR lets clients send and get CBOR.
	CBOR bool
}

// Server serves the API. It is an http.Handler; Serve puts it behind a listener.
type Server struct {
	config Config
	routes routes
	slis   *slis
	chain  *chain.Chain
	conns  *conn.Server
}

// New returns a Server.
func New(c Config) *Server {
	c.Config = c.WithDefaults()
	if c.Figures == nil {
		c.Figures = c.Metrics
	}
	s := &Server{config: c, slis: newSLIs(c.Started)}
	s.routes = s.newRoutes()
	hijacked := &conn.Hijacked{}
	s.chain = chain.New(c.Config, s, hijacked)
	handshakes := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "apiserver_tls_handshake_errors_total",
		Help: "Number of requests dropped with 'TLS handshake error from' error",
	})
	c.Metrics.MustRegister(handshakes)
	base := context.Background()
	if c.CBOR {
		base = codec.WithCBOR(base)
	}
	s.conns = conn.New(conn.Config{
		Handler: s.chain, Hijacked: hijacked, TLS: c.TLS, Context: base, HandshakeFailed: handshakes.Inc, Log: c.Log,
		Sending: c.Audit.Flush,
	})
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.chain.ServeHTTP(w, r) }

// Serve answers the connections of ln until Shutdown, then returns nil. It closes ln.
func (s *Server) Serve(ln net.Listener) error { return s.conns.Serve(ln) }

// Shutdown stops in order: readyz fails and watches end, no new connection or request is taken, running requests
// finish. When ctx ends before they have, their connections are closed and the error wraps ctx's.
func (s *Server) Shutdown(ctx context.Context) error {
	s.chain.Close()
	return s.conns.Shutdown(ctx)
}
