package kubelet

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
)

// leaving returns the writer and the request with which a client's connection is taken over, so that the request ends
// when its client leaves. net/http notices that only as long as the connection is its own.
func leaving(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), boundKey{}, true))
	return &leaver{w, cancel}, r.WithContext(ctx), cancel
}

// leaver is a writer whose connection, once it is taken over, ends the request at the end of what the client sends.
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
	// What has been read already is in the reader, which reads from the connection itself.
	heard := &listened{Conn: conn, from: rw.Reader, leave: l.leave}
	return heard, bufio.NewReadWriter(bufio.NewReader(heard), rw.Writer), nil
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
