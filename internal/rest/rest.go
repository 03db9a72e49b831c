// Package rest serves objects over HTTP: it parses requests, passes them to package verb, and writes the results.
//
// Package front, which has identified the caller and the target, calls it. route.go selects the handler, and each verb
// has its own file. form.go, list.go, stream.go and binary.go write objects, lists and watches in the client's form.
// Package verb decides the effect on objects. A Server is safe for concurrent use.
package rest

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Config holds the dependencies of a Server.
type Config struct {
	Verbs *verb.Verbs
	// Connections connect to the things behind objects, keyed by resource and subresource: "pods/exec". Optional.
	Connections map[string]Connection
	// WatchAtLeast is the minimum duration of a watch whose client sets none. Up to the same duration is added at
	// random, so that clients do not all reconnect at once.
	WatchAtLeast time.Duration
	// Metrics is the registry for the metrics of watches. Optional.
	Metrics *prometheus.Registry
}

// Server handles requests for objects.
type Server struct {
	verbs        *verb.Verbs
	connections  map[string]Connection
	watchAtLeast time.Duration
	figures      *figures
}

// New returns a server.
func New(c Config) *Server {
	s := &Server{verbs: c.Verbs, connections: c.Connections, watchAtLeast: c.WatchAtLeast, figures: newFigures()}
	if c.Metrics != nil {
		c.Metrics.MustRegister(s.figures)
	}
	return s
}

// ServeHTTP handles a request for a resource. All errors go through codec.WriteError.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request, info *request.Info, u user.Info) {
	if err := s.serve(w, r, info, u); err != nil {
		codec.WriteError(w, r, err)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, info *request.Info, u user.Info) error {
	by := verb.Client{User: u, Agent: r.UserAgent(), Audit: request.RecordOf(r.Context())}
	scope := request.ScopeOf(r.Context())
	if scope != nil {
		by.Visible = scope.Visible
	}
	c, err := s.verbs.Resolve(r.Context(), info, by)
	if err != nil {
		return err
	}
	if scope != nil {
		scope.Explain = request.RequestsExplanation(r)
	}
	serve, err := s.route(c, info)
	switch {
	case !c.Resource.Custom() && !s.hasPath(c, info):
		err = notServed()
	case !c.Resource.Custom() && !s.routed(c, r.Method), info.Verb == "watch" && r.Method != http.MethodGet:
		err = methodNotSupported(c, strings.ToLower(r.Method))
	}
	// Kubernetes' router refuses verbs of built-in kinds without the warning.
	if c.Version.Deprecated {
		noteDeprecated(r.Context(), c)
	}
	if c.Version.Deprecated && c.Version.Warning != "" && (err == nil || c.Resource.Custom()) {
		request.Warn(r.Context(), c.Version.Warning)
	}
	if err != nil {
		return err
	}
	if c.Version.Sensitive != nil {
		if c, err = s.conceal(r, c); err != nil {
			return err
		}
	}
	r, span := startSpan(r, info)
	defer span.End()
	return serve(w, r, c)
}

// noteDeprecated notes for metrics and the audit log that the request is about a deprecated version.
func noteDeprecated(ctx context.Context, c *verb.Call) {
	if scope := request.ScopeOf(ctx); scope != nil {
		scope.Deprecated, scope.Removed = true, c.Version.Removed
	}
	if c.Audit == nil {
		return
	}
	c.Audit.Annotate("k8s.io/deprecated", "true")
	if c.Version.Removed != "" {
		c.Audit.Annotate("k8s.io/removed-release", c.Version.Removed)
	}
}

// conceal returns the call without the sensitive fields that the caller may not read, and keeps these fields out of the
// audit log.
func (s *Server) conceal(r *http.Request, c *verb.Call) (*verb.Call, error) {
	c, err := s.verbs.Conceal(r.Context(), c)
	if err != nil {
		return nil, err
	}
	if scope := request.ScopeOf(r.Context()); scope != nil {
		scope.Audit = c.Audit
	}
	return c, nil
}
