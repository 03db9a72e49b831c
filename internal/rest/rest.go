// Package rest speaks HTTP about objects: it reads requests, hands them to package verb, and writes what comes of them.
//
// It stands behind package front, which has found out who asks and for what. route.go chooses the function that
// answers, one file for each verb has it, and form.go, list.go, stream.go and binary.go write objects, lists and
// watches in the form that the client asked for. What a verb does to an object is none of its business. A Server is
// safe for concurrent use.
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

// Config is what a Server works with.
type Config struct {
	Verbs *verb.Verbs
	// Connections are those to what stands for objects, by resource and subresource: "pods/exec". Optional.
	Connections map[string]Connection
	// WatchAtLeast is the shortest life of a watch whose client sets none, 30 minutes if zero; up to as much again is
	// added at random, so that clients do not all come back at once.
	WatchAtLeast time.Duration
	// Metrics is where the metrics of watches are registered. Optional.
	Metrics *prometheus.Registry
}

// Server answers requests for objects.
type Server struct {
	verbs        *verb.Verbs
	connections  map[string]Connection
	watchAtLeast time.Duration
	figures      *figures
}

// New returns a server.
func New(c Config) *Server {
	if c.WatchAtLeast == 0 {
		c.WatchAtLeast = 30 * time.Minute
	}
	s := &Server{verbs: c.Verbs, connections: c.Connections, watchAtLeast: c.WatchAtLeast, figures: newFigures()}
	if c.Metrics != nil {
		c.Metrics.MustRegister(s.figures)
	}
	return s
}

// ServeHTTP answers a request for a resource. Errors end in one place, codec.WriteError.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request, info *request.Info, who user.Info) {
	if err := s.serve(w, r, info, who); err != nil {
		codec.WriteError(w, r, err)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, info *request.Info, who user.Info) error {
	c, err := s.verbs.Resolve(r.Context(), info, who)
	if err != nil {
		return err
	}
	c.Agent, c.Audit = r.UserAgent(), request.RecordOf(r.Context())
	if scope := request.ScopeOf(r.Context()); scope != nil {
		c.Visible, scope.Explain = scope.Visible, request.AsksWhy(r)
	}
	serve, err := s.route(c, info)
	switch {
	case !c.Resource.Custom() && !s.hasPath(c, info):
		err = notServed()
	case !c.Resource.Custom() && !s.routed(c, r.Method), info.Verb == "watch" && r.Method != http.MethodGet:
		err = methodNotSupported(c, strings.ToLower(r.Method))
	}
	// kube's router, which refuses verbs of built-in kinds, does not warn
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
		if err := s.conceal(r, c); err != nil {
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

// conceal finds out what the caller may not read of objects with sensitive fields, of which nothing is recorded.
func (s *Server) conceal(r *http.Request, c *verb.Call) error {
	if err := s.verbs.Conceal(r.Context(), c); err != nil {
		return err
	}
	if scope := request.ScopeOf(r.Context()); scope != nil {
		scope.Audit = c.Audit
	}
	return nil
}
