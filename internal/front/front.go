// Package front is the entry of requests: it composes the connections (front/conn), the steps of every request
// (front/chain) and the handlers.
//
// It is the first package on a request's path and the last in import order: it dispatches to handlers (objects,
// discovery, documents, health, metrics) and does not depend on their implementation.
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

// Config configures a Server. Fields without a comment are required.
type Config struct {
	chain.Config // configures the steps

	Resources Handler // requests for objects
	Discovery Handler // /api and /apis, down to the resources of a version
	OpenAPI   Handler // /openapi/...; may be nil
	// Figures are the metrics of /metrics. Nil means all of Metrics.
	Figures prometheus.Gatherer
	// Elsewhere returns the handler of a request that another server answers, and nil for all other requests. May be
	// nil.
	Elsewhere Elsewhere
	// Started is the start time of the process for the metrics; zero omits it.
	Started time.Time
	// APIPaths returns the paths of groups and versions for the list at the root path. May be nil.
	APIPaths func() []string
	// Paths are further non-resource paths. One that ends in a slash also covers everything below it. May be nil.
	Paths map[string]Handler

	Checks []Check     // health; may be nil
	TLS    *tls.Config // nil serves without TLS (tests)

	// CBOR enables CBOR in requests and responses.
	CBOR bool
	// DirectHTTP2 serves HTTP/2 by package h2 instead of Go's server.
	DirectHTTP2 bool
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
		Sending: c.Audit.Flush, DirectHTTP2: c.DirectHTTP2,
	})
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.chain.ServeHTTP(w, r) }

// Serve serves the connections of ln until Shutdown, then returns nil. It closes ln.
func (s *Server) Serve(ln net.Listener) error { return s.conns.Serve(ln) }

// Shutdown stops in order: readyz fails and watches end, no new connection or request is taken, running requests
// finish. When ctx ends before they have, their connections are closed and the error wraps ctx's.
func (s *Server) Shutdown(ctx context.Context) error {
	s.chain.Close()
	return s.conns.Shutdown(ctx)
}
