package chain

import (
	"net/http"
	"regexp"
	"slices"
)

// The methods and headers that browsers may send and show to programs of other origins, as in kube-apiserver.
const (
	corsMethods = "POST, GET, OPTIONS, PUT, DELETE, PATCH"
	corsHeaders = "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since"
	corsExposed = "Date"
)

// cors adds CORS headers for programs from allowed origins, and answers preflight requests (Fetch standard), which
// carry no credentials.
func (c *Chain) cors(x *exchange, next func(*exchange)) {
	origin := x.r.Header.Get("Origin")
	if !c.allowsOrigin(origin) {
		next(x)
		return
	}
	header := x.Header()
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Allow-Methods", corsMethods)
	header.Set("Access-Control-Allow-Headers", corsHeaders)
	header.Set("Access-Control-Expose-Headers", corsExposed)
	header.Set("Access-Control-Allow-Credentials", "true")
	if x.r.Method == http.MethodOptions {
		x.WriteHeader(http.StatusNoContent)
		return
	}
	next(x)
}

// allowsOrigin reports whether programs of an origin may use the API in a browser.
func (c *Chain) allowsOrigin(origin string) bool {
	return origin != "" &&
		slices.ContainsFunc(c.config.AllowedOrigins, func(re *regexp.Regexp) bool { return re.MatchString(origin) })
}
