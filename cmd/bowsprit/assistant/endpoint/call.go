package endpoint

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/assistant"
	"github.com/bowsprit/bowsprit/internal/front/chain"
)

// callHeader has the name of a call, in the request for the SDK, which passes the headers on to the methods of the
// protocol. A client's value is replaced.
const callHeader = "Bowsprit-Call"

// call is a request to the endpoint, for which its tools send further requests.
type call struct {
	name      string
	caller    *chain.Caller
	host      string
	address   string      // of the client
	forwarded http.Header // the addresses of the client, as proxies report them
	tls       *tls.ConnectionState

	mu struct {
		sync.Mutex
		ended bool
		ends  []context.CancelFunc
	}
}

func newCall(caller *chain.Caller, r *http.Request) *call {
	c := &call{name: rand.Text(), caller: caller, host: r.Host, address: r.RemoteAddr, tls: r.TLS,
		forwarded: http.Header{}}
	for _, name := range []string{"X-Forwarded-For", "X-Real-Ip"} {
		if values := r.Header.Values(name); len(values) > 0 {
			c.forwarded[name] = values
		}
	}
	return c
}

// onEnd has a function called at the end of the call.
func (c *call) onEnd(end context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.ended {
		end()
		return
	}
	c.mu.ends = append(c.mu.ends, end)
}

// end ends the call. It may be called again.
func (c *call) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.ended = true
	for _, end := range c.mu.ends {
		end()
	}
	c.mu.ends = nil
}

// message returns the request for the SDK. Its context has nothing of the request's: a session keeps the context of its
// first request.
func (c *call) message(s *session, r *http.Request) *http.Request {
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), sessionKey{}, s))
	stop := context.AfterFunc(r.Context(), cancel)
	c.onEnd(func() { stop(); cancel() })
	m := r.Clone(ctx)
	m.Header.Set(callHeader, c.name)
	return m
}

// send sends a request of a tool through the steps of the server, as a request of the caller.
func (c *call) send(r *http.Request) (resp *http.Response, err error) {
	own := r.Clone(r.Context())
	own.URL = &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	own.RequestURI, own.Host, own.RemoteAddr, own.TLS = own.URL.RequestURI(), c.host, c.address, c.tls
	own.Proto, own.ProtoMajor, own.ProtoMinor = "HTTP/1.1", 1, 1
	for name, values := range c.forwarded {
		own.Header[name] = values
	}
	if own.Body == nil {
		own.Body = http.NoBody
	}
	defer func() {
		if cause := recover(); cause != nil { // a late response: the server breaks off the connection
			resp, err = nil, fmt.Errorf("the server broke off its response: %v", cause)
		}
	}()
	var w response
	c.caller.Serve(&w, own)
	return w.result(r)
}

// response is a response in memory.
type response struct {
	header  http.Header
	code    int
	body    bytes.Buffer
	tooLong bool
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(code int) {
	if w.code == 0 && code >= http.StatusOK {
		w.code = code
	}
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.tooLong = w.tooLong || w.body.Len()+len(p) > assistant.MaxResponse; w.tooLong {
		return 0, http.ErrContentLength
	}
	return w.body.Write(p)
}

// result returns the response to a client.
func (w *response) result(r *http.Request) (*http.Response, error) {
	if w.tooLong {
		return nil, fmt.Errorf("the response has more than %d bytes", assistant.MaxResponse)
	}
	w.WriteHeader(http.StatusOK)
	return &http.Response{
		StatusCode: w.code, Status: fmt.Sprintf("%d %s", w.code, http.StatusText(w.code)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.Header(),
		Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}
