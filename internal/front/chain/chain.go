// Package chain implements the ordered steps of every request before its handler.
//
// It stands between the connections (front/conn) and the handlers (Behind). The function steps lists the steps; each is
// a method of Chain in a file of its name.
//
// An exchange holds one request, the results of the steps, and the http.ResponseWriter of the handler. It belongs to
// the goroutine that serves the request. No step starts a goroutine for a request: when its time is over, its context
// ends and its reads and writes fail, so handlers must honour the context.
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
	"github.com/bowsprit/bowsprit/internal/request/charge"
	"github.com/bowsprit/bowsprit/internal/request/reuse"
)

// Behind is the interface to the handlers behind the steps.
type Behind interface {
	// Dispatch calls the handler of a request. The context of r has a request.Scope and the deadline.
	Dispatch(w http.ResponseWriter, r *http.Request, info *request.Info, u user.Info)
	// HasPath reports whether the server serves a non-resource path, which then gets its own metrics.
	HasPath(path string) bool
}

// Authenticator identifies the user of a request; an error means 401.
type Authenticator interface {
	Authenticate(r *http.Request) (user.Info, error)
}

// Config configures the steps. Fields without a comment are required.
type Config struct {
	Authenticator Authenticator
	Authorizer    authz.Authorizer
	// Viewer returns the visible objects of a resource that a caller may not list; nil if no authorization mode
	// supports it.
	Viewer authz.Viewer

	// Audit records requests. Nil records none.
	Audit *audit.Auditor

	Version version.Info // for browsers

	// StrictTransportSecurity are the directives of the header of that name in every response (RFC 6797). If empty,
	// there is no header.
	StrictTransportSecurity []string

	// AllowedOrigins match the origins that browsers may allow to use the API. If empty, browsers allow only the
	// server's own origin.
	AllowedOrigins []*regexp.Regexp

	// Metrics is the registry for request metrics.
	Metrics *prometheus.Registry
	// Served reports whether a resource request names an existing resource and subresource. Only those requests get
	// their own metrics; names invented by clients would fill the memory.
	Served func(*request.Info) bool

	// LongRunning reports whether a resource request has no time limit because of its subresource; watches never have
	// one.
	LongRunning func(*request.Info) bool

	// LegacyImpersonation disables the constrained modes of impersonation.
	LegacyImpersonation bool
	// Tracer starts the span of each request. Nil disables tracing.
	Tracer trace.Tracer

	// Memory bounds the memory of the requests under way. Nil is no bound.
	Memory *charge.Ledger

	// Flow distributes the server's seats among requests. If nil, only the limits below apply.
	Flow *flow.Controller

	RequestTimeout       time.Duration // limit for requests that are not long-running
	MaxRequestsInFlight  int           // concurrent reads; negative means no limit
	MaxMutationsInFlight int           // concurrent writes; negative means no limit

	Now   func() time.Time // nil is time.Now
	NewID func() string    // audit IDs; nil makes UUIDs
	Log   *slog.Logger
}

// Chain runs the steps for each request. It is an http.Handler.
type Chain struct {
	config  Config
	behind  Behind
	handle  func(*exchange) // the steps
	metrics *metrics
	acting  *authz.Impersonations
	hsts    []string // values of Strict-Transport-Security, nil or one; never changed
	reads   limit
	writes  limit
	turns   *turns
	stalls  stalls
	dates   dates
	// exchanges pools exchanges without references.
	exchanges *reuse.Pool[*exchange]
	// since returns the time elapsed since a result of config.Now. The default is time.Since, which reads one clock;
	// time.Now reads two.
	since    func(time.Time) time.Duration
	hijacked *conn.Hijacked

	// closing ends when shutdown begins: watches end, and new requests get a 503.
	closing context.Context
	close   context.CancelFunc
}

// New returns the chain of steps in front of behind. hijacked tracks the connections that handlers take over.
func New(config Config, behind Behind, hijacked *conn.Hijacked) *Chain {
	since := time.Since
	if now := config.Now; now != nil {
		since = func(began time.Time) time.Duration { return now().Sub(began) }
	} else {
		config.Now = time.Now
	}
	if config.NewID == nil {
		config.NewID = newID
	}
	c := &Chain{config: config, behind: behind, hijacked: hijacked, turns: newTurns(), since: since}
	c.exchanges = reuse.New(func() *exchange { return new(exchange) }, nil) // recycle clears them
	c.closing, c.close = context.WithCancel(context.Background())
	c.reads.max, c.writes.max = int64(config.MaxRequestsInFlight), int64(config.MaxMutationsInFlight)
	c.metrics = newMetrics(config.Metrics, c.inFlight, c.impersonationFilter())
	impersonations := config.Metrics
	if config.LegacyImpersonation {
		impersonations = nil // Kubernetes' older filter has no metrics
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

// step is one link of the chain. It either calls next or responds itself.
type step func(x *exchange, next func(*exchange))

// steps returns the steps as one function. They run in this order.
func (c *Chain) steps() func(*exchange) {
	steps := slices.DeleteFunc([]step{
		c.label,    // Audit-Id, Cache-Control, Strict-Transport-Security
		c.parse,    // the target of the request
		c.measure,  // metrics and log for all later steps
		c.recover,  // a panic becomes a 500
		c.drain,    // while shutting down: 503
		c.deadline, // the time limit
		c.cors,     // CORS headers; for a preflight: 204
		c.spanned("authentication", c.authenticate), // the user: 401
		c.traced(),                  // tracing, if sampled
		c.spanned("audit", c.audit), // the audit record
		c.crossSite,                 // pages of other sites, in a browser with a client certificate: 403
		c.spanned(c.impersonationFilter(), c.impersonate), // the impersonated user: 403
		c.welcome,                               // the page for browsers at /
		c.limit(),                               // the limit on concurrency: 429
		c.charge,                                // the account of its memory
		c.spanned("authorization", c.authorize), // the permission: 403
	}, func(s step) bool { return s == nil })
	handle := func(x *exchange) { c.behind.Dispatch(x, x.r, x.info, x.user) } // the handler: 404
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
	x := c.exchanges.Get()
	x.w, x.r, x.started, x.chain = w, r, c.config.Now(), c
	x.serve()
	x.recycle() // not after a panic
}

// label sets the audit ID and the headers for caches and, if configured, for TLS.
func (c *Chain) label(x *exchange, next func(*exchange)) {
	x.scope.AuditID = x.r.Header.Get("Audit-Id")
	if x.scope.AuditID == "" {
		x.scope.AuditID = c.config.NewID()
	}
	header := x.w.Header()
	header["Audit-Id"] = []string{x.scope.AuditID} // not memory of the exchange, which may be reused
	header["Cache-Control"] = cacheControl
	if c.hsts != nil {
		header["Strict-Transport-Security"] = c.hsts
	}
	next(x)
}

// newID returns a UUID (version 4). It must be unique but need not be secret, so it avoids the system call of package
// uuid.
func newID() string {
	var id uuid.UUID
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id.String()
}

// cacheControl is shared by all responses and never changed; a handler replaces the whole slice.
var cacheControl = []string{"no-cache, private"}

// parse determines the target of the request.
func (c *Chain) parse(x *exchange, next func(*exchange)) {
	info := &x.memory.info
	x.info = info
	if err := info.Parse(x.r); err != nil {
		c.fail(x, apierrors.NewInternalError(fmt.Errorf("failed to create RequestInfo: %w", err)))
		return
	}
	x.longRunning = info.LongRunning() || info.IsResource && info.Subresource != "" && c.config.LongRunning(info)
	next(x)
}

// fail responds with err.
func (c *Chain) fail(x *exchange, err error) {
	codec.WriteError(x, x.r, err)
}

// forbid responds with a 403. The message quotes parts of the request, so browsers must not guess its content type.
func (c *Chain) forbid(x *exchange, err error) {
	x.Header().Set("X-Content-Type-Options", "nosniff")
	c.fail(x, err)
}
