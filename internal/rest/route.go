package rest

import (
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// handler handles a request for a known resource.
type handler func(http.ResponseWriter, *http.Request, *verb.Call) error

// route selects the handler by subresource and verb.
func (s *Server) route(c *verb.Call, info *request.Info) (handler, error) {
	switch c.Subresource {
	case "":
		return s.routeResource(c, info.Verb)
	case "scale":
		if c.Version.Scale == nil {
			return nil, noSubresource(c)
		}
		switch info.Verb {
		case "get":
			return s.serveScaleGet, nil
		case "update":
			return s.serveScaleUpdate, nil
		case "patch":
			return s.serveScalePatch, nil
		}
		return nil, methodNotSupported(c, info.Verb)
	}
	return s.routeSubresource(c, info)
}

func (s *Server) routeResource(c *verb.Call, verb string) (handler, error) {
	if c.Resource.Virtual && c.Name != "" && !c.Resource.Answers("get") {
		return nil, notServed() // there are no stored objects, so no names
	}
	if verb == "watch" && c.Resource.Answers("list") && !c.Resource.Answers("watch") {
		return refuseWatch, nil
	}
	if !c.Resource.Answers(verb) {
		return nil, methodNotSupported(c, verb)
	}
	switch verb {
	case "get":
		return s.serveGet, nil
	case "list":
		return s.serveList, nil
	case "watch":
		return s.serveWatch, nil
	case "create":
		switch {
		case !c.Resource.Virtual:
			return s.serveCreate, nil
		case s.verbs.Action(c) != nil:
			return s.serveAction, nil
		}
		return s.serveVirtual, nil
	case "update":
		return s.serveUpdate, nil
	case "patch":
		return s.servePatch, nil
	case "delete":
		return s.serveDelete, nil
	case "deletecollection":
		return s.serveDeleteCollection, nil
	}
	return nil, methodNotSupported(c, verb)
}

func (s *Server) routeSubresource(c *verb.Call, info *request.Info) (handler, error) {
	sub := c.Resource.Subresource(c.Subresource)
	connection, connects := s.connection(c)
	// OPTIONS is no verb
	if sub != nil && !slices.Contains(sub.Verbs, info.Verb) && !(connection.Proxy && info.Verb == "") {
		return nil, methodNotSupported(c, info.Verb)
	}
	switch {
	case sub != nil && sub.Virtual != nil:
		return s.serveVirtual, nil
	case sub != nil && !sub.Object && connects:
		return s.serveConnection(connection, sub, info), nil
	case sub != nil && !sub.Object && s.verbs.Action(c) != nil:
		return s.serveAction, nil
	case sub != nil && !sub.Object:
		return nil, methodNotSupported(c, info.Verb)
	case !c.Resource.HasSubresource(c.Version, c.Subresource):
		return nil, noSubresource(c)
	}
	switch info.Verb {
	case "get":
		return s.serveGet, nil
	case "update":
		return s.serveUpdate, nil
	case "patch":
		return s.servePatch, nil
	}
	return nil, methodNotSupported(c, info.Verb)
}

// hasPath reports whether Kubernetes' router has the path of a built-in kind, for any method. Paths below a subresource
// exist only for proxies.
func (s *Server) hasPath(c *verb.Call, info *request.Info) bool {
	switch {
	case len(info.Parts) > 3:
		connection, _ := s.connection(c)
		return connection.Proxy
	case c.Subresource == "" && c.Name != "":
		return !c.Resource.Virtual || c.Resource.Answers("get")
	case c.Subresource == "":
		return !c.Resource.Namespaced || c.Namespace != "" || c.Resource.Answers("list")
	case c.Subresource == "scale":
		return c.Version.Scale != nil
	}
	return c.Resource.Subresource(c.Subresource) != nil || c.Resource.HasSubresource(c.Version, c.Subresource)
}

// routed reports whether Kubernetes' router has a path of a built-in kind for the method. If not, the request is
// refused at once. Paths of custom kinds bypass that router.
func (s *Server) routed(c *verb.Call, method string) bool {
	switch {
	case method == http.MethodHead:
		connection, _ := s.connection(c)
		return connection.Proxy
	case c.Subresource != "" || c.Resource.Virtual:
		return true
	case c.Name == "":
		everywhere := c.Resource.Namespaced && c.Namespace == "" // across all namespaces, reads only
		return method == http.MethodGet || !everywhere && (method == http.MethodPost || method == http.MethodDelete)
	default:
		return method != http.MethodPost
	}
}

func notServed() error { return verb.NotServed() }

// noSubresource is the error for a subresource that the kind does not have.
func noSubresource(c *verb.Call) error {
	if c.Resource.Custom() {
		return apierrors.NewNotFound(c.GroupResource(), c.Name)
	}
	return notServed()
}
