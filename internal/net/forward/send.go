package forward

import (
	"errors"
	"io"
	"net/http"
)

// Route is a list of further addresses for a request; the first address is in its URL.
type Route interface {
	// More reports whether there is another address.
	More() bool
	// Next advances to the next address and returns it, "host:port". It is called if there is More.
	Next() string
}

// Send sends a request with to. If no connection could be opened, so that no server has seen the request, it retries at
// the next address of the route, if there is one. UnreachedError identifies this case.
func Send(
	r *http.Request, route Route, to func(*http.Request) (*http.Response, error),
) (*http.Response, error) {
	if r.Body != nil && route.More() {
		// The transport closes it at its first failure. ReverseProxy does at the end.
		r.Body = io.NopCloser(r.Body)
	}
	for {
		resp, err := to(r)
		if unreached := (*UnreachedError)(nil); err == nil || !errors.As(err, &unreached) ||
			r.Context().Err() != nil || !route.More() {
			return resp, err
		}
		at := *r.URL
		at.Host = route.Next()
		again := *r
		again.URL, again.Host = &at, at.Host
		r = &again
	}
}

// TakeHeaders prepares the headers of an API's response for ReverseProxy, which adds them to the client's headers. It
// removes duplicates on one side.
func TakeHeaders(resp *http.Response, client http.Header) {
	CleanAPIHeaders(resp.Header)
	if resp.Header.Get("Cache-Control") != "" {
		client.Del("Cache-Control")
	}
}
