package conn

import (
	"io"
	"net/http"
	"time"
)

const (
	// unreadMost is how much of a body that no handler wanted is read all the same: a body of the largest size.
	unreadMost = 3 << 20
	// unreadWait is how long a client may take to send it.
	unreadWait = time.Second
)

// Body is the body of a request. It knows whether all of it has been read.
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

// Watch has handlers read the body of r through b. r must not be net/http's own: that tells by the type of its
// request's body how to go on.
func (b *Body) Watch(r *http.Request) {
	if r.ProtoMajor == 1 && r.ContentLength != 0 && r.Body != nil {
		b.ReadCloser = r.Body
		r.Body = b
	}
}

// LimitUnread gives a client of HTTP/1 that has not sent all of its body when the answer begins (401, 403, 413) a
// second to do so: net/http reads up to 256 KiB of the rest before it sends the answer, for as long as the client
// takes, and a connection would be held for minutes. After the second the answer is sent and the connection closed.
// Of HTTP/2 the Server reads the rest itself.
func (b *Body) LimitUnread(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 || r.ContentLength == 0 || b.ended {
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadWait)) // tests' writers have none
}

// drain reads what a handler has left of a request's body, so that an answer that needed none of it (404, 401,
// 429) does not overtake it. HTTP/2 would then tell the client to stop sending, by a reset of the stream right behind
// the answer, and curl takes the answer for lost. Of HTTP/1 requests net/http reads the rest itself. Who waits to be
// asked for the body (Expect) is not asked.
func drain(r *http.Request) {
	if r.ProtoMajor != 2 || r.ContentLength == 0 || r.ContentLength > unreadMost || r.Body == nil ||
		r.Header.Get("Expect") != "" {
		return
	}
	late := time.AfterFunc(unreadWait, func() { _ = r.Body.Close() }) // ends the reading
	defer late.Stop()
	_, _ = io.CopyN(io.Discard, r.Body, unreadMost) // an error means that there will be no more
}
