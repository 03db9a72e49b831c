package codec

import (
	"compress/gzip"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
)

// compressAbove is the size in bytes from which a body is compressed. It is Kubernetes' threshold, as is the level
// below.
const compressAbove = 128 << 10

var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// Compressor is a ResponseWriter that compresses its body with gzip once it is known to be large. Close it before the
// handler returns. It belongs to one goroutine.
type Compressor struct {
	w        http.ResponseWriter
	code     int
	deferred bool // the client accepts gzip, but the size is not known yet
	buffer   []byte
	gzip     *gzip.Writer
}

var _ http.ResponseWriter = (*Compressor)(nil)

// Compress wraps w for the response to r. If the client does not accept gzip, everything goes straight to w. Otherwise
// up to 128 KiB are held back before the header is written; a smaller body is sent uncompressed.
func Compress(w http.ResponseWriter, r *http.Request) *Compressor {
	return &Compressor{w: w, code: http.StatusOK, deferred: acceptsGzip(r)}
}

// Unwrap implements the interface that http.ResponseController uses.
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

// Write compresses p if the response is compressed.
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

// Close sends held bytes. No writes are allowed after it.
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

// acceptsGzip reports whether to compress for this client. A client on the same machine gets plain bytes, whatever it
// accepts: there is no network to relieve, and compressing a long list costs several times as much as building it.
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
