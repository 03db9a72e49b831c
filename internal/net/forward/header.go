package forward

import (
	"net/http"
	"strings"
)

// CleanHeaders removes from a response of another program the headers that are reserved for this server: they tell a
// client about this server, or a browser about everything at this server's address. Header names are canonical.
func CleanHeaders(header http.Header) {
	for name := range header {
		if reserved(name) {
			delete(header, name)
		}
	}
}

// reserved reports whether a header is reserved for the server that the client has called.
//
//   - Audit-Id, X-Kubernetes-*: the record of the request, and its place in priority and fairness.
//   - Access-Control-*, Cross-Origin-*, Timing-Allow-Origin: which pages may read this server's responses.
//   - Alt-Svc, Strict-Transport-Security, Public-Key-Pins, Expect-Ct: how browsers connect to this server.
//   - Clear-Site-Data, Service-Worker-Allowed, Origin-Agent-Cluster, Nel, Report-To, Reporting-Endpoints: state that a
//     browser keeps for this server.
//   - Proxy-Authenticate, Proxy-Authentication-Info: challenges of a proxy, which this server is not.
func reserved(name string) bool {
	switch name {
	case "Audit-Id", "Timing-Allow-Origin", "Alt-Svc", "Strict-Transport-Security", "Public-Key-Pins",
		"Public-Key-Pins-Report-Only", "Expect-Ct", "Clear-Site-Data", "Service-Worker-Allowed",
		"Origin-Agent-Cluster", "Nel", "Report-To", "Reporting-Endpoints", "Proxy-Authenticate",
		"Proxy-Authentication-Info":
		return true
	}
	return strings.HasPrefix(name, "X-Kubernetes-") || strings.HasPrefix(name, "Access-Control-") ||
		strings.HasPrefix(name, "Cross-Origin-")
}

// CleanAPIHeaders is CleanHeaders for a response of an API. It also removes the headers of pages for browsers: cookies,
// password challenges, and redirects without a redirect status.
func CleanAPIHeaders(header http.Header) {
	CleanHeaders(header)
	for _, name := range []string{"Set-Cookie", "Set-Cookie2", "Www-Authenticate", "Authentication-Info", "Refresh",
		"Server-Timing", "Link", "Sourcemap"} {
		delete(header, name)
	}
}
