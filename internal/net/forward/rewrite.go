package forward

import (
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/transport"

	"github.com/bowsprit/bowsprit/internal/request"
)

// Rewrite turns a client's request into a front proxy's request to an address, "host:port".
//
// It is for httputil.ReverseProxy.Rewrite and not for Director: after a Director the proxy removes the headers that the
// client names in Connection, which could include the headers with the user.
func Rewrite(r *httputil.ProxyRequest, address string, u user.Info) {
	keepForwarded(r)
	Prepare(r.Out, address, u)
}

// Prepare is Rewrite for a request without the client's connection headers.
func Prepare(out *http.Request, address string, u user.Info) {
	out.URL.Scheme, out.URL.Host, out.Host = "https", address, address
	for name := range out.Header {
		if name == "Authorization" || strings.HasPrefix(name, "Impersonate-") {
			delete(out.Header, name)
		}
	}
	transport.SetAuthProxyHeaders(out, u.GetName(), u.GetUID(), u.GetGroups(), u.GetExtra())
	if scope := request.ScopeOf(out.Context()); scope != nil {
		out.Header["Audit-Id"] = []string{scope.AuditID}
	}
}

// keepForwarded keeps the headers of earlier proxies about the client, and adds the client of this server.
func keepForwarded(r *httputil.ProxyRequest) {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = slices.Clone(values)
		}
	}
	if client, _, err := net.SplitHostPort(r.In.RemoteAddr); err == nil {
		chain := append(r.Out.Header["X-Forwarded-For"], client)
		r.Out.Header["X-Forwarded-For"] = []string{strings.Join(chain, ", ")}
	}
}
