// Package rest answers requests for objects: one file for each verb, for built-in and custom kinds alike.
//
// It stands in the middle of a request's path: package front has found out who asks and for what, rest decodes the
// body, changes the object, validates and stores it (create.go reads top to bottom as that story), and answers reads
// from the watch cache. Controllers act through the same verbs in process (Server.Create, Update, Delete, ...).
//
// A Call is one request to one resource. It holds the catalog snapshot that the request began with, so an answer never
// mixes two states of a definition. A Server is safe for concurrent use.
package rest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Object is decoded JSON: map[string]any, []any, string, bool, int64, float64, nil.
type Object = object.Object

// Config is what a Server works with. All fields are required but Answers, Finders, Allocators, Updated, StoreCBOR,
// WatchAtLeast and Log.
type Config struct {
	Catalog *catalog.Catalog
	View    *watchcache.View
	Store   *store.Store
	Admit   admit.Chain
	// Convert converts between versions; by strategy None only if nil.
	Convert *convert.Converter
	// Answers are those of virtual resources: "tokenreviews.authentication.k8s.io", "serviceaccounts/token". Optional.
	Answers map[string]Answer
	// Finders are those of the virtual resources that can be read: "componentstatuses". Optional.
	Finders map[string]Finder
	// Allocators are those of the kinds whose objects have what no other may have: "services". Optional.
	Allocators map[string]Allocator
	// Updated are told of each update that has been written, by the name of what was written to:
	// "certificatesigningrequests.certificates.k8s.io/status". They get the object as it was and as it is, and change
	// neither. Optional.
	Updated map[string]func(old, now Object)
	// Now, NewUID and NewSuffix (the random end of a generated name) are passed in so that tests are exact.
	Now       func() time.Time
	NewUID    func() string
	NewSuffix func() string
	// StoreCBOR writes custom objects as CBOR, which every server reads. Otherwise they are JSON.
	StoreCBOR bool
	// WatchAtLeast is the shortest life of a watch whose client sets none, 30 minutes if zero; up to as much again is
	// added at random, so that clients do not all come back at once.
	WatchAtLeast time.Duration
	Log          *slog.Logger
}

// Server answers requests for objects.
type Server struct {
	Config

	// serial holds a lock per resource whose rules look at other objects of the resource (definitions: their names must
	// not collide), from the read to the moment the view shows the write.
	serial sync.Map // catalog.GroupResource -> *sync.Mutex
	// lifecycle is the plugin of Admit that keeps objects out of namespaces that are being deleted; nil if it is
	// switched off.
	lifecycle admit.Mutator
}

// New returns a server.
func New(c Config) *Server {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Convert == nil {
		c.Convert = convert.New(convert.Options{})
	}
	if c.WatchAtLeast == 0 {
		c.WatchAtLeast = 30 * time.Minute
	}
	s := &Server{Config: c}
	for _, p := range c.Admit.Plugins {
		if l, ok := p.(admit.Lifecycle); ok {
			s.lifecycle = l
		}
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
	c, err := s.resolve(r.Context(), info, who)
	if err != nil {
		return err
	}
	c.agent = r.UserAgent()
	serve, err := s.verb(c, info)
	if !c.Resource.Custom() && !c.routed(r.Method) || info.Verb == "watch" && r.Method != http.MethodGet {
		err = c.methodNotSupported(strings.ToLower(r.Method))
	}
	// kube's router, which refuses verbs of built-in kinds, does not warn
	if c.Version.Deprecated && c.Version.Warning != "" && (err == nil || c.Resource.Custom()) {
		c.warn(r.Context(), c.Version.Warning)
	}
	if err != nil {
		return err
	}
	return serve(w, r, c)
}

// verb chooses the function that answers, by subresource and verb.
func (s *Server) verb(c *Call, info *request.Info) (func(http.ResponseWriter, *http.Request, *Call) error, error) {
	switch c.Subresource {
	case "":
		if c.Resource.Virtual && c.Name != "" && !c.Resource.Answers("get") {
			return nil, notServed() // there are no objects, so none has a path
		}
		if info.Verb == "watch" && c.Resource.Answers("list") && !c.Resource.Answers("watch") {
			return refuseWatch, nil
		}
		if !c.Resource.Answers(info.Verb) {
			return nil, c.methodNotSupported(info.Verb)
		}
		if c.Resource.Virtual && info.Verb == "create" {
			if c.Resource.Qualified() == "bindings" {
				return s.serveBinding, nil
			}
			return s.serveVirtual, nil
		}
		switch info.Verb {
		case "get":
			return s.serveGet, nil
		case "list":
			return s.serveList, nil
		case "watch":
			return s.serveWatch, nil
		case "create":
			return s.serveCreate, nil
		case "update":
			return s.serveUpdate, nil
		case "patch":
			return s.servePatch, nil
		case "delete":
			return s.serveDelete, nil
		case "deletecollection":
			return s.serveDeleteCollection, nil
		}
	case "scale":
		if c.Version.Scale == nil {
			return nil, c.noSubresource()
		}
		switch info.Verb {
		case "get":
			return s.serveScaleGet, nil
		case "update":
			return s.serveScaleUpdate, nil
		case "patch":
			return s.serveScalePatch, nil
		}
	default:
		sub := c.Resource.Subresource(c.Subresource)
		// OPTIONS is no verb
		if sub != nil && !slices.Contains(sub.Verbs, info.Verb) && !(sub.Name == "proxy" && info.Verb == "") {
			return nil, c.methodNotSupported(info.Verb)
		}
		if sub != nil && sub.Virtual != nil {
			return s.serveVirtual, nil
		}
		if sub != nil && !sub.Object {
			return s.other(sub, c, info)
		}
		if !c.Resource.HasSubresource(c.Version, c.Subresource) {
			return nil, c.noSubresource()
		}
		switch info.Verb {
		case "get":
			return s.serveGet, nil
		case "update":
			return s.serveUpdate, nil
		case "patch":
			return s.servePatch, nil
		}
	}
	return nil, c.methodNotSupported(info.Verb)
}

// routed tells whether Kubernetes' router has a path of a built-in kind for the method. Where it has none, nobody
// looks at the request any further. Paths of custom kinds do not go through it.
func (c *Call) routed(method string) bool {
	switch {
	case method == http.MethodHead:
		return c.Subresource == "proxy"
	case c.Subresource != "" || c.Resource.Virtual:
		return true
	case c.Name == "":
		everywhere := c.Resource.Namespaced && c.Namespace == "" // what all namespaces have can be read
		return method == http.MethodGet || !everywhere && (method == http.MethodPost || method == http.MethodDelete)
	default:
		return method != http.MethodPost
	}
}

// resolve finds the resource that a request names. What this replica does not know may have been made on another one a
// moment ago, so an unknown name is looked up again after catching up with the log.
func (s *Server) resolve(ctx context.Context, info *request.Info, who user.Info) (*Call, error) {
	c := s.lookup(info, who)
	if c == nil {
		if _, err := s.View.Fresh(ctx); err != nil {
			return nil, err
		}
		if c = s.lookup(info, who); c == nil {
			return nil, notServed()
		}
	}
	return c, nil
}

func (s *Server) lookup(info *request.Info, who user.Info) *Call {
	snap := s.Catalog.Snapshot()
	res, ver := snap.Served(info.Group, info.Version, info.Resource)
	if res == nil {
		return nil
	}
	c := &Call{
		Snapshot: snap, Resource: res, Version: ver, Namespace: info.Namespace, Name: info.Name,
		Subresource: info.Subresource, Verb: info.Verb, User: who,
	}
	switch {
	case res.Namespaced && c.Namespace == "" && info.Verb != "list" && info.Verb != "watch" &&
		(res.Custom() || res.Virtual || c.Name != ""):
		return nil // only these two work across namespaces; see routed
	case !res.Namespaced && c.Namespace != "" && !res.IsNamespace():
		return nil
	case !res.Namespaced:
		c.Namespace = ""
	}
	return c
}

// notServed is the answer to a path that names nothing: kubectl prints its message word for word.
func notServed() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
}

// noSubresource is the answer to the path of a subresource that the kind does not have.
func (c *Call) noSubresource() error {
	if c.Resource.Custom() {
		return apierrors.NewNotFound(c.groupResource(), c.Name)
	}
	return notServed()
}

// current returns the newest entry of the named object, or a NotFound error.
func (s *Server) current(ctx context.Context, c *Call) (*watchcache.Entry, error) {
	if _, err := s.View.Fresh(ctx); err != nil {
		return nil, err
	}
	return s.seen(c)
}

// seen returns the named object as the view has it.
func (s *Server) seen(c *Call) (*watchcache.Entry, error) {
	e := s.View.Collection(c.Resource.Prefix).Snapshot().Get(c.Namespace, c.Name)
	if e != nil {
		return e, nil
	}
	//lint:ignore SA1019 kube's rule, kept where kube keeps it
	if why := path.IsValidPathSegmentName(c.Name); len(why) > 0 {
		return nil,
			apierrors.NewBadRequest(fmt.Sprintf("Name parameter invalid: %q: %s", c.Name, strings.Join(why, ";")))
	}
	return nil, apierrors.NewNotFound(c.groupResource(), c.Name)
}
