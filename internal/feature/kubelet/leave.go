package kubelet

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
)

// leaving returns a writer and a request for a connection that will be hijacked. The request ends when the client
// disconnects; net/http detects that only until the hijacking.
func leaving(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), boundKey{}, true))
	return &leaver{w, cancel}, r.WithContext(ctx), cancel
}

// leaver is a writer that, once its connection is hijacked, ends the request at the end of the client's data.
type leaver struct {
	http.ResponseWriter
	leave func()
}

// Unwrap is for http.ResponseController.
func (l *leaver) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// Flush implements http.Flusher.
func (l *leaver) Flush() { _ = http.NewResponseController(l.ResponseWriter).Flush() }

// Hijack implements http.Hijacker.
func (l *leaver) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(l.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	// The reader has the buffered data, and reads on from the connection itself.
	watched := &listened{Conn: conn, from: rw.Reader, leave: l.leave}
	return watched, bufio.NewReadWriter(bufio.NewReader(watched), rw.Writer), nil
}

// listened is a client's connection.
type listened struct {
	net.Conn
	from  io.Reader
	leave func()
}

// Read implements net.Conn.
func (l *listened) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	if err != nil {
		l.leave()
	}
	return n, err
}
