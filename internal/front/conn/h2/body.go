package h2

import (
	"io"
	"net/http"
	"os"

	"golang.org/x/net/http2/hpack"
)

// body is the body of a request. Its fields are guarded by the conn's mutex.
type body struct {
	st      *stream
	data    []byte // received
	read    int    // bytes of data that the handler has read
	closed  bool   // by the handler
	err     error  // of a deadline
	asks    bool   // the client waits for 100 Continue
	trailer http.Header
	ended   bool // the handler has read the end
}

// put adds received bytes.
func (b *body) put(p []byte) {
	if b.data == nil {
		if n := b.st.declared; n > 0 && n <= 64<<10 {
			b.data = make([]byte, 0, n)
		}
	}
	b.data = append(b.data, p...)
	b.st.wake.Broadcast()
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	c := b.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	b.permit()
	for b.read == len(b.data) {
		switch {
		case b.closed:
			return 0, http.ErrBodyReadAfterClose
		case b.err != nil:
			return 0, b.err
		case b.st.received:
			b.end()
			return 0, io.EOF
		case b.st.err != nil:
			return 0, b.st.err
		case len(p) == 0:
			return 0, nil
		}
		b.st.wake.Wait()
	}
	n := copy(p, b.data[b.read:])
	if b.read += n; b.read == len(b.data) {
		b.data, b.read = b.data[:0], 0
	}
	b.free(n)
	if b.st.received && len(b.data) == 0 {
		b.end()
		return n, io.EOF
	}
	return n, nil
}

// permit sends 100 Continue, once, to a client that waits for it.
func (b *body) permit() {
	c := b.st.c
	if !b.asks || b.st.err != nil {
		return
	}
	b.asks = false
	if b.st.response.sent {
		return
	}
	_ = c.header.WriteField(hpack.HeaderField{Name: ":status", Value: "100"}) // to a buffer
	c.appendHeaders(b.st.id, false)
	c.flush()
}

// end sets the trailers of the request: they follow the body.
func (b *body) end() {
	if b.ended {
		return
	}
	b.ended = true
	for key, values := range b.trailer {
		b.st.request.Trailer[key] = values
	}
}

// free returns n bytes to the windows.
func (b *body) free(n int) {
	c := b.st.c
	flush := c.giveBack(n)
	if !b.st.received && b.st.err == nil {
		if update := b.st.credit.give(n); update > 0 {
			c.appendWindowUpdate(b.st.id, update)
			flush = true
		}
	}
	if flush {
		c.flush()
	}
}

// Close implements io.Closer. A Read that waits returns.
func (b *body) Close() error {
	c := b.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	b.close()
	return nil
}

func (b *body) close() {
	if b.closed {
		return
	}
	b.closed = true
	if rest := len(b.data) - b.read; rest > 0 && b.st.c.giveBack(rest) {
		b.st.c.flush()
	}
	b.data, b.read = nil, 0
	b.st.wake.Broadcast()
}

// late ends reads after a deadline.
func (b *body) late() {
	b.err = os.ErrDeadlineExceeded
	b.st.wake.Broadcast()
}
