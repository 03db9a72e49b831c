// Package rest speaks HTTP about objects: it reads requests, hands them to package verb, and writes what comes of them.
//
// It stands behind package front, which has found out who asks and for what. route.go chooses the function that
// answers, one file for each verb has it, and form.go, list.go, stream.go and binary.go write objects, lists and
// watches in the form that the client asked for. What a verb does to an object is none of its business. A Server is
// safe for concurrent use.
package rest

import (
	"net/http"
	"strings"
	"time"

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
}

// Server answers requests for objects.
type Server struct {
	verbs        *verb.Verbs
	connections  map[string]Connection
	watchAtLeast time.Duration
}

// New returns a server.
func New(c Config) *Server {
	if c.WatchAtLeast == 0 {
		c.WatchAtLeast = 30 * time.Minute
	}
	return &Server{verbs: c.Verbs, connections: c.Connections, watchAtLeast: c.WatchAtLeast}
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
	c.Agent = r.UserAgent()
	serve, err := s.route(c, info)
	if !c.Resource.Custom() && !s.routed(c, r.Method) || info.Verb == "watch" && r.Method != http.MethodGet {
		err = methodNotSupported(c, strings.ToLower(r.Method))
	}
	// kube's router, which refuses verbs of built-in kinds, does not warn
	if c.Version.Deprecated && c.Version.Warning != "" && (err == nil || c.Resource.Custom()) {
		request.Warn(r.Context(), c.Version.Warning)
	}
	if err != nil {
		return err
	}
	return serve(w, r, c)
}
