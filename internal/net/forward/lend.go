package forward

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// lendMost is how long a client may take to send data that a transport still waits for after the response.
const lendMost = time.Second

// Lend makes a proxy answer a request. The transport of a proxy reads the body in a goroutine that outlives an early
// response. A body of HTTP/2 must not be read once the handler is done, since the server then reads it. Lend takes the
// body back from the transport, and waits for a read in progress: at most a second, then it closes the body. For
// HTTP/1, net/http has its own lock.
func Lend(proxy http.Handler, w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 2 || r.Body == nil || r.ContentLength == 0 {
		proxy.ServeHTTP(w, r)
		return
	}
	lent := &lentBody{body: r.Body, reading: make(chan struct{}, 1)}
	defer lent.takeBack() // also if the proxy panics, which is how it aborts a response
	out := *r
	out.Body = lent
	proxy.ServeHTTP(w, &out)
}

// lentBody is a body that others read until it is taken back.
type lentBody struct {
	body    io.ReadCloser
	back    atomic.Bool
	reading chan struct{} // holds an element during a read
}

var errTakenBack = errors.New("the request was answered; its body is no longer read")

// Read implements io.Reader.
func (b *lentBody) Read(p []byte) (int, error) {
	b.reading <- struct{}{}
	defer func() { <-b.reading }()
	if b.back.Load() {
		return 0, errTakenBack
	}
	return b.body.Read(p)
}

// Close implements io.Closer. The body itself stays open: its owner reads the rest.
func (b *lentBody) Close() error {
	b.back.Store(true)
	return nil
}

func (b *lentBody) takeBack() {
	b.back.Store(true)
	select {
	case b.reading <- struct{}{}: // no read is in progress: the usual case
		<-b.reading
		return
	default:
	}
	late := time.AfterFunc(lendMost, func() { _ = b.body.Close() }) // ends a read in progress
	b.reading <- struct{}{}
	late.Stop()
	<-b.reading
}
