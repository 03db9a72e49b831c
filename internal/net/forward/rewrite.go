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

// Rewrite makes the request of a client that of a front proxy to an address, "host:port".
//
// It is for httputil.ReverseProxy.Rewrite and not for its Director: what a client names in Connection is removed after
// that one, the headers that say who asks included.
func Rewrite(r *httputil.ProxyRequest, address string, who user.Info) {
	keepForwarded(r)
	Prepare(r.Out, address, who)
}

// Prepare is what Rewrite does with a request that has none of the client's headers about its connection.
func Prepare(out *http.Request, address string, who user.Info) {
	out.URL.Scheme, out.URL.Host, out.Host = "https", address, address
	for name := range out.Header {
		if name == "Authorization" || strings.HasPrefix(name, "Impersonate-") {
			delete(out.Header, name)
		}
	}
	transport.SetAuthProxyHeaders(out, who.GetName(), who.GetUID(), who.GetGroups(), who.GetExtra())
	if scope := request.ScopeOf(out.Context()); scope != nil {
		out.Header["Audit-Id"] = []string{scope.AuditID}
	}
}

// keepForwarded passes on what proxies before this one said of the client, and adds who asked here.
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
