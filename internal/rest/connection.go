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

// A Connection answers requests to be connected to what stands for an object: the container of a pod, a node.
type Connection struct {
	// Options reads what the client asks for into a Go value of the subresource's kind, an empty one for a nil query.
	// Admission is asked about it. nil for a subresource that is only read (pods/log).
	Options func(query url.Values) (any, error)
	// Proxy is true if requests are passed on as they are, by any method. Options gets the path below as "path".
	Proxy bool
	// Serve answers when admission has let the request pass. options are what Options has read, nil without it.
	Serve func(w http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call, options any) error
}

// connection returns the connection that the call asks for. It is not ok if the subresource is no connection.
func (s *Server) connection(c *verb.Call) (connection Connection, ok bool) {
	if c.Subresource == "" || len(s.connections) == 0 {
		return connection, false
	}
	connection, ok = s.connections[c.Target()]
	return connection, ok
}

// serveConnection returns the function that answers a request to be connected, by whatever method. Admission is asked
// about it as Kubernetes asks: before it turns out whether there is such an object.
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
		fresh := func() any { empty, _ := to.Options(nil); return empty } // nothing can be wrong with no query
		if err := s.verbs.Connect(r.Context(), c, sub.Kind.Kind, options, fresh); err != nil {
			return err
		}
		return to.Serve(w, r, s.verbs, c, options)
	}
}

// pathBelow is the path that a proxy is to ask for: what follows after its own.
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
