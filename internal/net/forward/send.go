package forward

import (
	"errors"
	"io"
	"net/http"
)

// Route is where else a request may be sent, of which the first address is in its URL.
type Route interface {
	// More reports whether there is another address.
	More() bool
	// Next goes on to it and returns it, "host:port". It is called if there is More.
	Next() string
}

// Send has to send a request. One for which no connection could be opened, so that no server has seen any of it, goes
// to the next address of its route, if there is one. Whether a connection was opened, an UnreachedError says.
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

// TakeHeaders prepares the headers of an API's answer to be added to those that the client gets in any case, which is what
// ReverseProxy does with them: what would be there twice is taken away on one side.
func TakeHeaders(resp *http.Response, client http.Header) {
	CleanAPIHeaders(resp.Header)
	if resp.Header.Get("Cache-Control") != "" {
		client.Del("Cache-Control")
	}
}
