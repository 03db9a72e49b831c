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
