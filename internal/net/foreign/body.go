package foreign

import (
	"fmt"
	"io"
	"net/http"
)

// Bounds of responses by their purpose, in bytes.
const (
	// MaxDocument bounds a document that describes another program: a discovery document, a key set, a Status, a
	// review.
	MaxDocument = 1 << 20
	// MaxHeader bounds the headers of a response.
	MaxHeader = 256 << 10
)

// TooLong is the error of a response beyond its bound.
type TooLong struct {
	Limit int64 // bytes
}

// Error implements error.
func (e *TooLong) Error() string {
	return fmt.Sprintf("the answer exceeds the limit of %d bytes", e.Limit)
}

// ReadAll reads r to its end. It returns *TooLong if there are more than limit bytes.
func ReadAll(r io.Reader, limit int64) ([]byte, error) { return io.ReadAll(Reader(r, limit)) }

// Reader returns a reader of at most limit bytes of r. The read that would pass the bound returns *TooLong.
func Reader(r io.Reader, limit int64) io.Reader { return &reader{from: r, left: limit, limit: limit} }

type reader struct {
	from        io.Reader
	left, limit int64
}

// Read implements io.Reader.
func (r *reader) Read(b []byte) (int, error) {
	if int64(len(b)) > r.left+1 { // one more byte distinguishes the end from an excess
		b = b[:r.left+1]
	}
	n, err := r.from.Read(b)
	if int64(n) > r.left {
		n, r.left = int(r.left), 0
		return n, &TooLong{Limit: r.limit}
	}
	r.left -= int64(n)
	return n, err
}

// Bounded wraps a transport so that response bodies have at most limit bytes. The bound counts decompressed bytes if
// next decompresses.
func Bounded(next http.RoundTripper, limit int64) http.RoundTripper {
	return &bounded{next: next, limit: limit}
}

// Document is Bounded for documents. It is a client-go WrapTransport function.
func Document(next http.RoundTripper) http.RoundTripper { return Bounded(next, MaxDocument) }

type bounded struct {
	next  http.RoundTripper
	limit int64
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, Error(err)
	}
	resp.Status = Text(resp.Status)
	if _, upgraded := resp.Body.(io.Writer); !upgraded {
		resp.Body = &body{Reader: Reader(resp.Body, b.limit), close: resp.Body.Close}
	}
	return resp, nil
}

// WrappedRoundTripper returns the transport behind the bound, for libraries that look for its settings.
func (b *bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

// CloseIdleConnections closes the connections of the transport behind the bound that no request uses.
func (b *bounded) CloseIdleConnections() {
	if c, ok := b.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

type body struct {
	io.Reader
	close func() error
}

// Close implements io.Closer.
func (b *body) Close() error { return b.close() }
