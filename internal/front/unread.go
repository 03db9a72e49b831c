package front

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

// requestBody is the body of a request. It knows whether all of it has been read.
type requestBody struct {
	io.ReadCloser
	ended bool
}

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ended = true
	}
	return n, err
}

// watchBody has handlers read the body through x.body. x.r must be the exchange's own: net/http tells by the type of
// its request's body how to go on.
func (x *exchange) watchBody() {
	if x.r.ProtoMajor == 1 && x.r.ContentLength != 0 && x.r.Body != nil {
		x.body.ReadCloser = x.r.Body
		x.r.Body = &x.body
	}
}

// limitUnread gives a client of HTTP/1 that has not sent all of its body when the answer begins (401, 403, 413) a
// second to do so: net/http reads up to 256 KiB of the rest before it sends the answer, for as long as the client
// takes, and a connection would be held for minutes. After the second the answer is sent and the connection closed.
// HTTP/2 is drainBody's.
func (x *exchange) limitUnread() {
	if x.r.ProtoMajor != 1 || x.r.ContentLength == 0 || x.body.ended {
		return
	}
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(unreadWait)) // tests' writers have none
}

// drainBody reads what a handler has left of a request's body, so that an answer that needed none of it (404, 401,
// 429) does not overtake it. HTTP/2 would then tell the client to stop sending, by a reset of the stream right behind
// the answer, and curl takes the answer for lost. Of HTTP/1 requests net/http reads the rest itself. Who waits to be
// asked for the body (Expect) is not asked.
func drainBody(r *http.Request) {
	if r.ProtoMajor != 2 || r.ContentLength == 0 || r.ContentLength > unreadMost || r.Body == nil ||
		r.Header.Get("Expect") != "" {
		return
	}
	late := time.AfterFunc(unreadWait, func() { _ = r.Body.Close() }) // ends the reading
	defer late.Stop()
	_, _ = io.CopyN(io.Discard, r.Body, unreadMost) // an error means that there will be no more
}
