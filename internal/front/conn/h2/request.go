package h2

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
)

// newStream makes the stream of a request from its HEADERS. A malformed request is a StreamError (RFC 9113, 8.1.1).
func (c *conn) newStream(f *http2.MetaHeadersFrame) (*stream, error) {
	malformed := http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
	st := &stream{
		c: c, id: f.StreamID, window: c.opened, declared: -1, received: f.StreamEnded(), handler: c.handler,
		credit: credit{left: int64(c.s.config.StreamWindow), whole: int64(c.s.config.StreamWindow)},
	}
	st.wake.L = &c.mu
	header := makeHeader(f.RegularFields())
	r := &http.Request{
		Method: f.PseudoValue("method"), Proto: "HTTP/2.0", ProtoMajor: 2, Header: header, RemoteAddr: c.remote,
		TLS: &c.state, Body: http.NoBody,
	}
	if !address(r, f) {
		return nil, malformed
	}
	if values, ok := header["Content-Length"]; ok {
		n, err := strconv.ParseUint(values[0], 10, 62)
		if err != nil || len(values) > 1 || st.received && n > 0 {
			return nil, malformed
		}
		st.declared = int64(n)
	}
	if httpguts.HeaderValuesContainsToken(header["Expect"], "100-continue") {
		st.body.asks = true
	}
	if cookies := header["Cookie"]; len(cookies) > 1 {
		header["Cookie"] = []string{strings.Join(cookies, "; ")}
	}
	r.Trailer = announced(header)
	if !st.received {
		r.Body = &st.body
		r.ContentLength = st.declared
	}
	ctx, cancel := context.WithCancel(c.base)
	st.cancel = cancel
	st.request = r.WithContext(ctx)
	st.body.st = st
	st.response.begin(st)
	switch {
	case f.Truncated:
		st.handler = http.HandlerFunc(tooLarge)
	case forbidden(header):
		st.handler = http.HandlerFunc(connectionHeader)
	}
	return st, nil
}

// address sets the URL and host of a request. It returns false if the pseudo-headers are malformed.
func address(r *http.Request, f *http2.MetaHeadersFrame) bool {
	path, scheme, authority := f.PseudoValue("path"), f.PseudoValue("scheme"), f.PseudoValue("authority")
	if f.PseudoValue("protocol") != "" { // extended CONNECT, which no setting allows
		return false
	}
	hosts := r.Header["Host"]
	switch {
	case len(hosts) > 1, len(hosts) == 1 && authority != "" && hosts[0] != authority:
		return false
	case len(hosts) == 1:
		authority = hosts[0]
		delete(r.Header, "Host")
	}
	if strings.Contains(authority, "@") || authority != "" && !httpguts.ValidHostHeader(authority) {
		return false
	}
	r.Host = authority
	if r.Method == http.MethodConnect {
		r.URL, r.RequestURI = &url.URL{Host: authority}, authority
		return path == "" && scheme == "" && authority != ""
	}
	if r.Method == "" || scheme != "https" && scheme != "http" || path == "" || path[0] != '/' && path != "*" {
		return false
	}
	u, err := url.ParseRequestURI(path)
	r.URL, r.RequestURI = u, path
	return err == nil
}

// announced returns the trailers that the header announces, without values.
func announced(header http.Header) http.Header {
	values, ok := header["Trailer"]
	if !ok {
		return nil
	}
	delete(header, "Trailer")
	trailer := http.Header{}
	for _, value := range values {
		for name := range strings.SplitSeq(value, ",") {
			if key := http.CanonicalHeaderKey(strings.TrimSpace(name)); httpguts.ValidTrailerHeader(key) {
				trailer[key] = nil
			}
		}
	}
	return trailer
}

// forbidden reports whether a header has a field that only HTTP/1 knows.
func forbidden(header http.Header) bool {
	for _, key := range connectionFields {
		if _, ok := header[key]; ok {
			return true
		}
	}
	te := header["Te"]
	return len(te) > 0 && (len(te) > 1 || te[0] != "trailers" && te[0] != "")
}

func tooLarge(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "the header of the request is too large", http.StatusRequestHeaderFieldsTooLarge)
}

func connectionHeader(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "the request has a header field of HTTP/1 connections", http.StatusBadRequest)
}
