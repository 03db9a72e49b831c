package chain

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
)

// ownSites are the values of Sec-Fetch-Site for requests of the server's own pages and of the address bar (Fetch
// Metadata Request Headers, section 2.3).
var ownSites = []string{"same-origin", "none"}

// crossSite refuses writes and WebSockets that a page of another site makes a browser send with the user's client
// certificate: 403. A browser presents the certificate on every connection, and sends some writes without a preflight
// request. No script can set Sec-Fetch-Site, and other clients do not send it. Reads pass: the page cannot see their
// responses.
func (c *Chain) crossSite(x *exchange, next func(*exchange)) {
	header := x.r.Header
	sites := header["Sec-Fetch-Site"]
	if len(sites) == 0 || !byCertificate(x.user) || c.allowsOrigin(header.Get("Origin")) ||
		!slices.ContainsFunc(sites, func(site string) bool { return !slices.Contains(ownSites, site) }) ||
		(x.r.Method == http.MethodGet || x.r.Method == http.MethodHead) && header.Get("Upgrade") == "" {
		next(x)
		return
	}
	c.forbid(x, authz.Forbidden(x.user, x.info, "a page of another site sent this request with the client certificate "+
		"of a browser: --cors-allowed-origins allows the pages of an origin"))
}

// byCertificate reports whether a user has proved its identity with a client certificate.
func byCertificate(u user.Info) bool {
	return u != nil && slices.ContainsFunc(u.GetExtra()[user.CredentialIDKey], func(id string) bool {
		return strings.HasPrefix(id, "X509SHA256=")
	})
}
