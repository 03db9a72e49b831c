package request

import (
	"net/http"
	"slices"
	"strings"
)

// IsWebSocket reports whether a client requests an upgrade to WebSocket (RFC 6455), as browsers do. HTTP/2 has no such
// requests.
func IsWebSocket(r *http.Request) bool {
	return r.ProtoMajor == 1 && strings.EqualFold(r.Header.Get("Upgrade"), "websocket") &&
		slices.ContainsFunc(r.Header["Connection"],
			func(v string) bool { return strings.Contains(strings.ToLower(v), "upgrade") })
}
