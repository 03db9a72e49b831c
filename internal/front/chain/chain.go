// Package chain has the ordered steps that every request passes before a handler answers it.
//
// It stands between the connections (front/conn) and the handlers, which it knows as one function (Behind). steps
// lists the steps; each is a method of Chain in a file of its name.
//
// An exchange is one request with everything that the steps find out about it, and the http.ResponseWriter that
// handlers write to. It belongs to the goroutine that serves the request. No step starts a goroutine for a request: a
// request whose time is over is told so through its context, and its reads and writes end, so a handler must honour
// its context.
//
// A Chain is safe for concurrent use.
package chain

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/front/audit"
	"github.com/bowsprit/bowsprit/internal/front/conn"
	"github.com/bowsprit/bowsprit/internal/front/flow"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Behind is what stands behind the steps.
type Behind interface {
	// Dispatch hands a request to the handler that answers it. r carries a request.Scope and its deadline in its
	// context.
	Dispatch(w http.ResponseWriter, r *http.Request, info *request.Info, who user.Info)
	// HasPath reports whether a non-resource path is served, so that it may have metrics of its own.
	HasPath(path string) bool
}

// Authenticator says who sends a request; an error means 401.
type Authenticator interface {
	Authenticate(r *http.Request) (user.Info, error)
}

// Config is what the steps go by. Fields without a comment are required.
type Config struct {
	Authenticator Authenticator
	Authorizer    authz.Authorizer
	// Viewer says what callers may see of a resource that they may not list; nil if no mode can.
	Viewer authz.Viewer

	// Audit records requests. Nil records none.
	Audit *audit.Auditor

	Version version.Info // what browsers are told

	// StrictTransportSecurity are the directives of the header of that name in every answer (RFC 6797); without any
	// there is no header.
	StrictTransportSecurity []string

	// AllowedOrigins match the origins from which programs in browsers may use the API. Without any, browsers decide
	// as they do by themselves, which is that only the server's own may.
	AllowedOrigins []*regexp.Regexp

	// Metrics is where the metrics of requests are registered. Nil makes one.
	Metrics *prometheus.Registry
	// Served reports whether a resource request names something that exists, with its subresource. Only then does it
	// get metrics of its own; names that any client may invent would fill the memory. Nil is never.
	Served func(*request.Info) bool

	// LongRunning reports whether a resource request may last as long as its client wants because of the subresource
	// that it resolves to; watches may in any case. Nil is never.
	LongRunning func(*request.Info) bool

	// LegacyImpersonation has users act as others without the constrained modes.
	LegacyImpersonation bool
	// Tracer begins the span of each request. Nil traces none.
	Tracer trace.Tracer

	// Flow shares the server's seats out among requests. Nil limits how many there are, see below, and no more.
	Flow *flow.Controller

	RequestTimeout       time.Duration // longest time for requests that are not long-running; 0 is 60 s
	MaxRequestsInFlight  int           // reads at the same time; 0 is 400, less is no limit
	MaxMutationsInFlight int           // writes at the same time; 0 is 200, less is no limit

	Now   func() time.Time // nil is time.Now
	NewID func() string    // audit IDs; nil makes UUIDs
	Log   *slog.Logger     // nil is silent
}

// WithDefaults returns c with the defaults for what is not set.
func (c Config) WithDefaults() Config {
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
		c.NewID = newID
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Chain sends requests through the steps. It is an http.Handler.
type Chain struct {
	config  Config
	behind  Behind
	handle  func(*exchange) // the steps
	metrics *metrics
	acting  *authz.Impersonations
	hsts    []string // the values of Strict-Transport-Security, nil or one; never changed
	reads   limit
	writes  limit
	turns   *turns
	stalls  stalls
	dates   dates
	// exchanges are those that no one knows any more.
	exchanges sync.Pool
	// since is how long ago a time of config.Now is: time.Since, which reads one clock where time.Now reads two.
	since    func(time.Time) time.Duration
	hijacked *conn.Hijacked

	// closing ends when shutdown begins: watches end, new requests are sent elsewhere.
	closing context.Context
	close   context.CancelFunc
}

// New returns the steps before what is behind them. hijacked learns of the connections that handlers take over.
func New(config Config, behind Behind, hijacked *conn.Hijacked) *Chain {
	since := time.Since
	if now := config.Now; now != nil {
		since = func(began time.Time) time.Duration { return now().Sub(began) }
	}
	config = config.WithDefaults()
	c := &Chain{config: config, behind: behind, hijacked: hijacked, turns: newTurns(), since: since}
	c.closing, c.close = context.WithCancel(context.Background())
	c.reads.max, c.writes.max = int64(config.MaxRequestsInFlight), int64(config.MaxMutationsInFlight)
	c.metrics = newMetrics(config.Metrics, c.inFlight, c.impersonationFilter())
	impersonations := config.Metrics
	if config.LegacyImpersonation {
		impersonations = nil // Kubernetes' older filter counts nothing
	}
	c.acting = authz.NewImpersonations(config.Authorizer, impersonations)
	c.acting.LegacyOnly = config.LegacyImpersonation
	if len(config.StrictTransportSecurity) > 0 {
		c.hsts = []string{strings.Join(config.StrictTransportSecurity, "; ")}
	}
	c.handle = c.steps()
	return c
}

// inFlight returns how many reads, or writes, run now.
func (c *Chain) inFlight(writes bool) int {
	switch {
	case c.config.Flow != nil:
		return c.config.Flow.InFlight(writes)
	case writes:
		return int(c.writes.now.Load())
	}
	return int(c.reads.now.Load())
}

// Close ends watches and has new requests sent elsewhere.
func (c *Chain) Close() { c.close() }

// Closed reports whether Close was called.
func (c *Chain) Closed() bool { return c.closing.Err() != nil }

// step is one link of the chain. It calls next, or answers and does not.
type step func(x *exchange, next func(*exchange))

// steps returns the steps as one function. They run in the order in which they stand here.
func (c *Chain) steps() func(*exchange) {
	steps := slices.DeleteFunc([]step{
		c.label,    // Audit-Id, Cache-Control, Strict-Transport-Security
		c.parse,    // what is asked for
		c.measure,  // metrics and log, of whatever happens from here on
		c.recover,  // a panic becomes a 500
		c.drain,    // while shutting down: 503
		c.deadline, // how long it may take
		c.cors,     // what browsers are told, and whether that is all: 204
		c.spanned("authentication", c.authenticate), // who asks: 401
		c.traced(),                  // how long what takes, of some
		c.spanned("audit", c.audit), // what is recorded of it
		c.spanned(c.impersonationFilter(), c.impersonate), // as whom: 403
		c.welcome,                               // what a browser is shown at /
		c.limit(),                               // how many at a time: 429
		c.spanned("authorization", c.authorize), // may they: 403
	}, func(s step) bool { return s == nil })
	handle := func(x *exchange) { c.behind.Dispatch(x, x.r, x.info, x.who) } // who answers: 404
	for _, step := range slices.Backward(steps) {
		next := handle
		handle = func(x *exchange) { step(x, next) }
	}
	return handle
}

// traced returns the step that traces requests, nil if none is.
func (c *Chain) traced() step {
	if c.config.Tracer == nil {
		return nil
	}
	return c.trace
}

// limit returns the step that keeps the server from doing too much at a time.
func (c *Chain) limit() step {
	if c.config.Flow != nil {
		return c.spanned("priorityandfairness", c.share)
	}
	return c.throttle
}

// ServeHTTP implements http.Handler.
func (c *Chain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := c.newExchange()
	x.w, x.r, x.started, x.chain = w, r, c.config.Now(), c
	x.serve()
	x.recycle() // not after a panic
}

// label names the request for logs, tells caches to keep out and, if wanted, browsers to insist on TLS.
func (c *Chain) label(x *exchange, next func(*exchange)) {
	x.scope.AuditID = x.r.Header.Get("Audit-Id")
	if x.scope.AuditID == "" {
		x.scope.AuditID = c.config.NewID()
	}
	header := x.w.Header()
	header["Audit-Id"] = []string{x.scope.AuditID} // no memory of the exchange, which may serve another request
	header["Cache-Control"] = cacheControl
	if c.hsts != nil {
		header["Strict-Transport-Security"] = c.hsts
	}
	next(x)
}

// newID returns a UUID (version 4). It has to differ from all others and need not be secret, so it costs no system call
// as one of package uuid does.
func newID() string {
	var id uuid.UUID
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id.String()
}

// cacheControl is shared by all answers and never changed; a handler that wants another value sets another slice.
var cacheControl = []string{"no-cache, private"}

// parse finds out what is asked for.
func (c *Chain) parse(x *exchange, next func(*exchange)) {
	info := &x.asked
	x.info = info
	if err := info.Parse(x.r); err != nil {
		c.fail(x, apierrors.NewInternalError(fmt.Errorf("failed to create RequestInfo: %w", err)))
		return
	}
	x.longRunning = info.LongRunning() || info.IsResource && info.Subresource != "" && c.config.LongRunning(info)
	next(x)
}

// fail answers with err.
func (c *Chain) fail(x *exchange, err error) {
	codec.WriteError(x, x.r, err)
}

// forbid answers a request that its caller may not make. Its message has names out of the request, which a browser is
// not to guess a content type from.
func (c *Chain) forbid(x *exchange, err error) {
	x.Header().Set("X-Content-Type-Options", "nosniff")
	c.fail(x, err)
}
