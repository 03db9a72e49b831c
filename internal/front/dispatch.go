package front

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Handler answers a request. r has a request.Scope and its deadline in its context.
type Handler func(w http.ResponseWriter, r *http.Request, info *request.Info, u user.Info)

// Elsewhere returns the handler of a request that another server answers, and nil for all other requests.
type Elsewhere func(r *http.Request, info *request.Info) Handler

// FirstOf returns an Elsewhere that returns the first non-nil handler; it is nil if there are none.
func FirstOf(all []Elsewhere) Elsewhere {
	if len(all) <= 1 {
		return append(all, nil)[0]
	}
	return func(r *http.Request, info *request.Info) Handler {
		for _, one := range all {
			if h := one(r, info); h != nil {
				return h
			}
		}
		return nil
	}
}

// routes are the handlers of non-resource paths. One that ends in a slash covers everything below it, and the path
// without the slash.
type routes map[string]Handler

func (s *Server) newRoutes() routes {
	r := routes{
		"/api/":     s.config.Discovery,
		"/apis/":    s.config.Discovery,
		"/openapi/": s.config.OpenAPI,
		"/version/": s.serveVersion,
		"/metrics":  serveFigures(s.config.Figures, s.config.Started),
		"/healthz/": s.serveHealth("healthz"),
		"/livez/":   s.serveHealth("livez"),
		"/readyz/":  s.serveHealth("readyz"),

		"/metrics/slis": serveFigures(s.slis.registry, s.config.Started),
	}
	maps.Copy(r, s.config.Paths)
	maps.DeleteFunc(r, func(_ string, h Handler) bool { return h == nil })
	index := s.serveIndex(r)
	r["/"], r["/index.html"] = index, index
	return r
}

// shortPath is the length up to which find looks up each prefix of a path. The cost of the look-ups grows with the
// square of the length, and a client may send a path of a megabyte.
const shortPath = 256

// longest returns the length of the longest path that has a handler.
func (r routes) longest() (n int) {
	for path := range r {
		n = max(n, len(path))
	}
	return n
}

// find returns the handler for path, or nil if there is none.
func (r routes) find(path string) Handler {
	if h := r[path]; h != nil {
		return h
	}
	if len(path) > shortPath {
		path = path[:min(len(path), r.longest())]
	}
	for {
		if h := r[path+"/"]; h != nil && path != "" {
			return h
		}
		slash := strings.LastIndexByte(path, '/')
		if slash <= 0 {
			return nil
		}
		path = path[:slash]
	}
}

// Dispatch implements chain.Behind.
func (s *Server) Dispatch(w http.ResponseWriter, r *http.Request, info *request.Info, u user.Info) {
	if elsewhere := s.config.Elsewhere; elsewhere != nil {
		if h := elsewhere(r, info); h != nil {
			h(w, r, info, u)
			return
		}
	}
	if info.IsResource {
		s.config.Resources(w, r, info, u)
		return
	}
	if h := s.routes.find(info.Path); h != nil {
		h(w, r, info, u)
		return
	}
	codec.WriteError(w, r, generic(http.StatusNotFound, r.Method))
}

// HasPath implements chain.Behind.
func (s *Server) HasPath(path string) bool { return s.routes[path] != nil || s.routes[path+"/"] != nil }

// generic is the error for a request without an object: kubectl prints its message literally.
func generic(code int, method string) error {
	return apierrors.NewGenericServerResponse(code, method, schema.GroupResource{}, "", "", 0, false)
}

// serveIndex lists the paths.
func (s *Server) serveIndex(r routes) Handler {
	var own []string
	for path := range r {
		switch path = strings.TrimSuffix(path, "/"); path {
		case "/openapi":
			own = append(own, "/openapi/v2", "/openapi/v3", "/openapi/v3/")
		case "/healthz", "/livez", "/readyz":
			own = append(own, path)
			for _, c := range s.checks(path[1:]) {
				own = append(own, path+"/"+c.Name)
			}
		default:
			own = append(own, path)
		}
	}
	return func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
		paths := slices.Clone(own)
		if s.config.APIPaths != nil {
			paths = append(paths, s.config.APIPaths()...)
		}
		slices.Sort(paths)
		body, err := json.MarshalIndent(metav1.RootPaths{Paths: slices.Compact(paths)}, "", "  ")
		if err != nil {
			panic(err) // strings only
		}
		writeJSON(w, r, body)
	}
}

// serveVersion serves /version, from which clients learn the supported features.
func (s *Server) serveVersion(w http.ResponseWriter, r *http.Request, info *request.Info, _ user.Info) {
	if info.Path != "/version" && info.Path != "/version/" {
		codec.WriteError(w, r, generic(http.StatusNotFound, r.Method))
		return
	}
	body, err := json.MarshalIndent(s.config.Version, "", "  ")
	if err != nil {
		panic(err) // strings only
	}
	writeJSON(w, r, body)
}

func writeJSON(w http.ResponseWriter, r *http.Request, body []byte) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		codec.WriteError(w, r, generic(http.StatusMethodNotAllowed, r.Method))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}
