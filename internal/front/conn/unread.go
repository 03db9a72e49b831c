package conn

import (
	"io"
	"net/http"
	"time"
)

const (
	// unreadMost is the maximum of unread body bytes that the server still reads: a body of the maximum size.
	unreadMost = 3 << 20
	// unreadWait limits the time for the client to send them.
	unreadWait = time.Second
)

// Body is the body of a request. It records whether all of it has been read.
type Body struct {
	io.ReadCloser
	ended bool
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ended = true
	}
	return n, err
}

// Watch replaces the body of r by b. r must be a copy of net/http's request, because net/http depends on the type of
// its own request's body.
func (b *Body) Watch(r *http.Request) {
	if r.ProtoMajor == 1 && r.ContentLength != 0 && r.Body != nil {
		b.ReadCloser = r.Body
		r.Body = b
	}
}

// LimitUnread gives an HTTP/1 client that has not sent its whole body when the response begins (401, 403, 413) one
// second to finish. Otherwise net/http would read up to 256 KiB of the rest before it sends the response, without a
// time limit, and could hold a connection for minutes. After the second the response is sent and the connection closed.
// For HTTP/2 the Server reads the rest itself.
func (b *Body) LimitUnread(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 || r.ContentLength == 0 || b.ended {
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadWait)) // writers in tests have no deadline
}

// drain reads the rest of a request's body, so that a response that needed none of it (404, 401, 429) does not overtake
// it. HTTP/2 would otherwise stop the client with a stream reset right behind the response, and curl then discards the
// response. For HTTP/1 net/http reads the rest itself. A client that waits for permission to send the body (Expect)
// gets none.
func drain(r *http.Request) {
	if r.ProtoMajor != 2 || r.ContentLength == 0 || r.ContentLength > unreadMost || r.Body == nil ||
		r.Header.Get("Expect") != "" {
		return
	}
	late := time.AfterFunc(unreadWait, func() { _ = r.Body.Close() }) // ends the read
	defer late.Stop()
	_, _ = io.CopyN(io.Discard, r.Body, unreadMost) // an error means that no more will come
}
