package forward

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// lendMost is how long a client may take to send what a transport still waits for when the request has been answered.
const lendMost = time.Second

// Lend has a proxy answer a request. The transport of a proxy reads the body in a goroutine that outlives the answer
// if that came before all of the body had; a body of HTTP/2 must be left alone once the handler is done, as it is read
// then by who gives the connection back. Lend takes the body away from the transport, and waits for a read that is
// under way: at most a second, then it closes the body. A body of HTTP/1 has net/http's own lock for this.
func Lend(proxy http.Handler, w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 2 || r.Body == nil || r.ContentLength == 0 {
		proxy.ServeHTTP(w, r)
		return
	}
	lent := &lentBody{body: r.Body}
	defer lent.takeBack() // also if the proxy panics, which is how it breaks off an answer
	out := *r
	out.Body = lent
	proxy.ServeHTTP(w, &out)
}

// lentBody is a body that is read by others until it is taken back.
type lentBody struct {
	body    io.ReadCloser
	back    atomic.Bool
	reading sync.Mutex
}

var errTakenBack = errors.New("the request has been answered, its body is not read any more")

// Read implements io.Reader.
func (b *lentBody) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	if b.back.Load() {
		return 0, errTakenBack
	}
	return b.body.Read(p)
}

// Close implements io.Closer. The body itself stays open: who lent it reads what is left.
func (b *lentBody) Close() error {
	b.back.Store(true)
	return nil
}

func (b *lentBody) takeBack() {
	b.back.Store(true)
	if b.reading.TryLock() { // no read is under way: the usual case
		b.reading.Unlock()
		return
	}
	late := time.AfterFunc(lendMost, func() { _ = b.body.Close() }) // ends the read
	defer late.Stop()
	b.reading.Lock()
	defer b.reading.Unlock()
}
