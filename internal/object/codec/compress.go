package codec

import (
	"compress/gzip"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
)

// compressAbove is the size from which a body is worth compressing, in bytes. Kube's measure, as is the level below.
const compressAbove = 128 << 10

var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// Compressor is a ResponseWriter whose body is compressed with gzip once it is known to be large. Close it before the
// handler returns. It is used by one goroutine.
type Compressor struct {
	w        http.ResponseWriter
	code     int
	deferred bool // the client takes gzip, and it is not decided yet
	buffer   []byte
	gzip     *gzip.Writer
}

var _ http.ResponseWriter = (*Compressor)(nil)

// Compress wraps w for the answer to r. If the client does not take gzip, everything goes straight to w. Otherwise up
// to 128 KiB are held back before the header is written; a body that ends below that is sent as it is.
func Compress(w http.ResponseWriter, r *http.Request) *Compressor {
	return &Compressor{w: w, code: http.StatusOK, deferred: acceptsGzip(r)}
}

// Unwrap lets http.ResponseController find what is below.
func (c *Compressor) Unwrap() http.ResponseWriter { return c.w }

// Header, WriteHeader and Write implement http.ResponseWriter.
func (c *Compressor) Header() http.Header { return c.w.Header() }

// WriteHeader sends the header, and decides by it whether the body is compressed.
func (c *Compressor) WriteHeader(code int) {
	c.code = code
	if !c.deferred {
		c.w.WriteHeader(code)
	}
}

// Write compresses p if the answer is compressed.
func (c *Compressor) Write(p []byte) (int, error) {
	switch {
	case c.gzip != nil:
		return c.gzip.Write(p)
	case !c.deferred:
		return c.w.Write(p)
	case len(c.buffer)+len(p) <= compressAbove:
		c.buffer = append(c.buffer, p...)
		return len(p), nil
	}
	c.deferred = false
	c.Header().Set("Content-Encoding", "gzip")
	c.Header().Add("Vary", "Accept-Encoding")
	c.w.WriteHeader(c.code)
	c.gzip = gzipWriters.Get().(*gzip.Writer)
	c.gzip.Reset(c.w)
	if _, err := c.gzip.Write(c.buffer); err != nil {
		return 0, err
	}
	c.buffer = nil
	return c.gzip.Write(p)
}

// Close sends what is held back. Writes after it are not allowed.
func (c *Compressor) Close() error {
	if c.gzip != nil {
		err := c.gzip.Close()
		c.gzip.Reset(nil)
		gzipWriters.Put(c.gzip)
		c.gzip = nil
		return err
	}
	if !c.deferred {
		return nil
	}
	c.deferred = false
	c.Header().Set("Content-Length", strconv.Itoa(len(c.buffer)))
	c.w.WriteHeader(c.code)
	_, err := c.w.Write(c.buffer)
	return err
}

// acceptsGzip reports whether to compress for this client. One on the same machine gets plain bytes, whatever it
// accepts: there is no network to spare, and compressing a long list costs several times what making it costs.
func acceptsGzip(r *http.Request) bool {
	if local, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && local.Addr().IsLoopback() {
		return false
	}
	for header := r.Header.Get("Accept-Encoding"); header != ""; {
		var token string
		token, header, _ = strings.Cut(header, ",")
		if strings.TrimSpace(token) == "gzip" {
			return true
		}
	}
	return false
}
