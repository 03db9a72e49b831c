package rest

import (
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Connection handles requests that connect to the thing behind an object: the container of a pod, or a node.
type Connection struct {
	// Options parses the query into a Go value of the subresource's kind; a nil query gives an empty value. Admission
	// receives the value. Options is nil for a subresource that is only read (pods/log).
	Options func(query url.Values) (any, error)
	// Proxy is true if requests are forwarded unchanged, with any method. Options receives the remaining path as
	// "path".
	Proxy bool
	// Serve handles the request after admission. options is the result of Options, or nil.
	Serve func(w http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call, options any) error
}

// connection returns the connection for the call. ok is false if the subresource is not a connection.
func (s *Server) connection(c *verb.Call) (connection Connection, ok bool) {
	if c.Subresource == "" || len(s.connections) == 0 {
		return connection, false
	}
	connection, ok = s.connections[c.Target()]
	return connection, ok
}

// serveConnection returns the handler of a connection, for any method. As in Kubernetes, admission runs before the
// object is looked up.
func (s *Server) serveConnection(to Connection, sub *catalog.Subresource, info *request.Info) handler {
	return func(w http.ResponseWriter, r *http.Request, c *verb.Call) error {
		if to.Options == nil {
			return to.Serve(w, r, s.verbs, c, nil)
		}
		if info.Verb == "" && r.Method != http.MethodOptions {
			return methodNotSupported(c, info.Verb)
		}
		query := r.URL.Query()
		if len(query["dryRun"]) > 0 {
			return apierrors.NewBadRequest("dryRun is not supported")
		}
		if to.Proxy {
			query.Set("path", pathBelow(info))
		}
		options, err := to.Options(query)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		fresh := func() any { empty, _ := to.Options(nil); return empty } // an empty query has no errors
		if err := s.verbs.Connect(r.Context(), c, sub.Kind, options, fresh); err != nil {
			return err
		}
		return to.Serve(w, r, s.verbs, c, options)
	}
}

// pathBelow returns the path that a proxy requests: the rest after the proxy's own path.
func pathBelow(info *request.Info) string {
	p := strings.Join(info.Parts[3:], "/")
	if p != "" && !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	if strings.HasSuffix(info.Path, "/") && !strings.HasSuffix(p, "/") {
		p += "/"
	}
	return p
}
