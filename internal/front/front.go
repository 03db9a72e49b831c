// Package front is where requests come in: the listener, TLS, and the ordered steps that every request passes before a
// handler answers it.
//
// It is the first package on a request's path and the last in import order: it knows who answers what (objects,
// discovery, documents, health, metrics) and nothing about how. chain lists the steps; each step is a method in a file
// of its name.
//
// An exchange is one request with everything that the steps find out about it, and the http.ResponseWriter that
// handlers write to. It belongs to the goroutine that serves the request. No step starts a goroutine for a request: a
// request whose time is over is told so through its context, and its reads and writes end, so a handler must honour
// its context.
//
// A Server is safe for concurrent use. Shutdown may be called once.
package front

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Handler answers a request. r carries a request.Scope and its deadline in its context.
type Handler func(w http.ResponseWriter, r *http.Request, info *request.Info, who user.Info)

// Authenticator says who sends a request; an error means 401.
type Authenticator interface {
	Authenticate(r *http.Request) (user.Info, error)
}

// Config is what a Server is made from. Fields without a comment are required.
type Config struct {
	Authenticator Authenticator
	Authorizer    authz.Authorizer

	Resources Handler // requests for objects
	Discovery Handler // /api and /apis, down to the resources of a version
	OpenAPI   Handler // /openapi/...; may be nil
	// Started is when the process began, which is told with metrics; zero is not told.
	Started time.Time
	// APIPaths returns the paths of groups and versions, which the root path lists with all others. May be nil.
	APIPaths func() []string
	// Paths are further non-resource paths. One that ends in a slash answers for everything below it too. May be nil.
	Paths map[string]Handler

	Checks  []Check      // health; may be nil
	Version version.Info // of /version
	TLS     *tls.Config  // nil serves without TLS (tests)

	// CBOR lets clients send and get CBOR.
	CBOR bool

	// StrictTransportSecurity are the directives of the header of that name in every answer (RFC 6797); without any
	// there is no header.
	StrictTransportSecurity []string

	// AllowedOrigins match the origins from which programs in browsers may use the API. Without any, browsers decide
	// as they do by themselves, which is that only the server's own may.
	AllowedOrigins []*regexp.Regexp

	// Metrics is where the server's metrics are registered and what /metrics shows. Nil makes one.
	Metrics *prometheus.Registry
	// Served reports whether a resource request names something that exists, with its subresource. Only then does it
	// get metrics of its own; names that any client may invent would fill the memory. Nil is never.
	Served func(*request.Info) bool

	// LongRunning reports whether a resource request may last as long as its client wants because of the subresource
	// that it resolves to; watches may in any case. Nil is never.
	LongRunning func(*request.Info) bool

	RequestTimeout       time.Duration // longest time for requests that are not long-running; 0 is 60 s
	MaxRequestsInFlight  int           // reads at the same time; 0 is 400, less is no limit
	MaxMutationsInFlight int           // writes at the same time; 0 is 200, less is no limit

	Now   func() time.Time // nil is time.Now
	NewID func() string    // audit IDs; nil makes UUIDs
	Log   *slog.Logger     // nil is silent
}

// Server serves the API. It is an http.Handler; Serve puts it behind a listener.
type Server struct {
	config   Config
	handle   func(*exchange) // the chain
	routes   routes
	metrics  *metrics
	slis     *slis
	hsts     []string // the values of Strict-Transport-Security, nil or one; never changed
	reads    limit
	writes   limit
	http     *http.Server
	hijacked hijacked // connections that handlers have taken over
	unasked  unasked  // connections without a request

	// closing ends when shutdown begins: watches end, readyz fails, new requests are sent elsewhere.
	closing context.Context
	close   context.CancelFunc
}

// New returns a Server.
func New(c Config) *Server {
	c = withDefaults(c)
	s := &Server{config: c, slis: newSLIs()}
	s.closing, s.close = context.WithCancel(context.Background())
	s.reads.max, s.writes.max = int64(c.MaxRequestsInFlight), int64(c.MaxMutationsInFlight)
	s.metrics = newMetrics(c.Metrics, &s.reads, &s.writes)
	if len(c.StrictTransportSecurity) > 0 {
		s.hsts = []string{strings.Join(c.StrictTransportSecurity, "; ")}
	}
	s.routes = s.newRoutes()
	s.handle = s.chain()
	s.http = s.newHTTPServer()
	return s
}

func withDefaults(c Config) Config {
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	if c.Served == nil {
		c.Served = func(*request.Info) bool { return false }
	}
	if c.LongRunning == nil {
		c.LongRunning = func(*request.Info) bool { return false }
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = time.Minute
	}
	if c.MaxRequestsInFlight == 0 {
		c.MaxRequestsInFlight = 400
	}
	if c.MaxMutationsInFlight == 0 {
		c.MaxMutationsInFlight = 200
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewID == nil {
		c.NewID = uuid.NewString
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// step is one link of the chain. It calls next, or answers and does not.
type step func(x *exchange, next func(*exchange))

// chain returns the steps as one function. They run in the order in which they stand here.
func (s *Server) chain() func(*exchange) {
	steps := []step{
		s.label,        // Audit-Id, Cache-Control, Strict-Transport-Security
		s.parse,        // what is asked for
		s.measure,      // metrics and log, of whatever happens from here on
		s.recover,      // a panic becomes a 500
		s.drain,        // while shutting down: 503
		s.deadline,     // how long it may take
		s.cors,         // what browsers are told, and whether that is all: 204
		s.authenticate, // who asks: 401
		s.welcome,      // what a browser is shown at /
		s.throttle,     // how many at a time: 429
		s.authorize,    // may they: 403
	}
	handle := s.dispatch // who answers: 404
	for _, step := range slices.Backward(steps) {
		next := handle
		handle = func(x *exchange) { step(x, next) }
	}
	return handle
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = growStack(0)
	x := &exchange{w: w, r: r, started: s.config.Now(), hijacked: &s.hijacked}
	defer func() {
		if x.conn != nil {
			s.hijacked.end(x.conn)
		}
	}()
	s.handle(x)
	drainBody(r)
}

// label names the request for logs, tells caches to keep out and, if wanted, browsers to insist on TLS.
func (s *Server) label(x *exchange, next func(*exchange)) {
	x.scope.AuditID = x.r.Header.Get("Audit-Id")
	if x.scope.AuditID == "" {
		x.scope.AuditID = s.config.NewID()
	}
	x.auditID[0] = x.scope.AuditID
	header := x.w.Header()
	header["Audit-Id"] = x.auditID[:]
	header["Cache-Control"] = cacheControl
	if s.hsts != nil {
		header["Strict-Transport-Security"] = s.hsts
	}
	next(x)
}

// cacheControl is shared by all answers and never changed; a handler that wants another value sets another slice.
var cacheControl = []string{"no-cache, private"}

// parse finds out what is asked for.
func (s *Server) parse(x *exchange, next func(*exchange)) {
	info, err := request.Parse(x.r)
	x.info = info
	if err != nil {
		s.fail(x, apierrors.NewInternalError(fmt.Errorf("failed to create RequestInfo: %w", err)))
		return
	}
	x.longRunning = info.LongRunning() || info.IsResource && info.Subresource != "" && s.config.LongRunning(info)
	next(x)
}

// fail answers with err.
func (s *Server) fail(x *exchange, err error) {
	codec.WriteError(x, x.r, err)
}
