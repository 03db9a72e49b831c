package h2

import (
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/bowsprit/bowsprit/internal/request/reuse"
)

// smallSize is the number of bytes of a body that wait for more, or for the end of the handler.
const smallSize = 4 << 10

var smalls = reuse.Bytes(smallSize)

// response is the http.ResponseWriter of a stream. It belongs to the handler, except for sent and late, which the
// conn's mutex guards.
type response struct {
	st       *stream
	header   http.Header
	status   int // 0 before WriteHeader
	fields   []hpack.HeaderField
	room     [12]hpack.HeaderField // memory of fields
	declared int64                 // Content-Length, -1 if the handler has set none
	written  int64
	small    *[]byte // bytes of the body that have not been framed; nil if none
	typed    bool    // fields has a Content-Type, or needs none
	dated    bool
	trailers []string // announced keys
	sent     bool     // HEADERS have been appended
}

func (w *response) begin(st *stream) {
	w.st, w.header, w.declared = st, make(http.Header, 8), -1
	w.fields = w.room[:0]
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// hasBody reports whether the status allows a body.
func (w *response) hasBody() bool {
	return w.status >= 200 && w.status != http.StatusNoContent && w.status != http.StatusNotModified
}

// WriteHeader implements http.ResponseWriter. It takes a copy of the header: later changes have no effect.
func (w *response) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic("h2: invalid status " + strconv.Itoa(status))
	}
	switch {
	case w.status != 0:
		return
	case status < 200:
		w.inform(status)
		return
	}
	w.status = status
	w.fields = appendFields(w.fields, w.header)
	if values := w.header["Content-Length"]; len(values) > 0 {
		if n, err := strconv.ParseUint(values[0], 10, 62); err == nil {
			w.declared = int64(n)
		} else {
			w.drop("content-length")
		}
	}
	_, typed := w.header["Content-Type"]
	_, encoded := w.header["Content-Encoding"]
	w.typed = typed || encoded
	_, w.dated = w.header["Date"]
	for _, value := range w.header["Trailer"] {
		for key := range strings.SplitSeq(value, ",") {
			w.trailers = append(w.trailers, http.CanonicalHeaderKey(strings.TrimSpace(key)))
		}
	}
	if slices.Contains(w.header["Connection"], "close") {
		w.st.c.leave()
	}
}

func (w *response) drop(name string) {
	w.fields = slices.DeleteFunc(w.fields, func(f hpack.HeaderField) bool { return f.Name == name })
}

// inform sends an informational response.
func (w *response) inform(status int) {
	c := w.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.st.err != nil {
		return
	}
	w.st.body.asks = w.st.body.asks && status != http.StatusContinue
	c.writeFields(status, appendFields(nil, w.header))
	c.appendHeaders(w.st.id, false)
	c.flush()
}

// writeFields encodes fields to the connection's block. The writer is a buffer, which has no errors.
func (c *conn) writeFields(status int, fields []hpack.HeaderField) {
	if status != 0 {
		_ = c.header.WriteField(hpack.HeaderField{Name: ":status", Value: strconv.Itoa(status)})
	}
	for _, field := range fields {
		_ = c.header.WriteField(field)
	}
}

// Write implements http.ResponseWriter. When it returns, p may change, unless the response was handed over.
func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.hasBody() {
		return 0, http.ErrBodyNotAllowed
	}
	w.written += int64(len(p))
	if w.declared >= 0 && w.written > w.declared {
		return 0, http.ErrContentLength
	}
	if w.st.request.Method == http.MethodHead {
		return len(p), nil
	}
	if w.st.carried.begun.Load() {
		return len(p), w.st.put(p)
	}
	if w.small == nil && len(p) < smallSize {
		w.small = smalls.Get()
	}
	if w.small != nil && len(*w.small)+len(p) <= smallSize {
		*w.small = append(*w.small, p...)
		return len(p), nil
	}
	if err := w.send(p, false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteString implements io.StringWriter.
func (w *response) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() }

// FlushError sends the header and all bytes so far.
func (w *response) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.send(nil, false)
}

// complete sends the rest of the response, with the end of the stream.
func (w *response) complete() {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	_ = w.send(nil, true) // the stream has ended before
	w.release()
}

// release returns the buffer of small bytes.
func (w *response) release() {
	if w.small != nil {
		*w.small = (*w.small)[:0]
		smalls.Put(w.small)
		w.small = nil
	}
}

// send appends the small bytes and p.
func (w *response) send(p []byte, last bool) error {
	c := w.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.st.err != nil {
		return w.st.err
	}
	var small []byte
	if w.small != nil {
		small = *w.small
	}
	if last && w.declared > w.written && w.hasBody() && w.st.request.Method != http.MethodHead {
		w.st.fail(http.ErrContentLength) // the client would take the response for complete
		return w.st.err
	}
	trailer := w.trailer(last)
	end := last && len(trailer) == 0
	if !w.sent {
		if w.sendHeader(small, p, last, end); end && len(small)+len(p) == 0 {
			return nil
		}
	}
	if len(small) > 0 {
		if err := w.st.write(small, end && len(p) == 0); err != nil {
			return err
		}
		*w.small = small[:0]
	}
	if len(p) > 0 || end && len(small) == 0 {
		if err := w.st.write(p, end); err != nil {
			return err
		}
	}
	if len(trailer) > 0 {
		c.writeFields(0, trailer)
		c.appendHeaders(w.st.id, true)
	}
	if !last { // stream.finish flushes the end
		c.flush()
	}
	return nil
}

// sendHeader appends HEADERS. If last is set, no byte follows behind small and p; if end is set, too, no trailers do.
func (w *response) sendHeader(small, p []byte, last, end bool) {
	c := w.st.c
	w.sent = true
	if len(small) == 0 {
		small = p
	}
	if !w.typed && w.hasBody() && len(small) > 0 {
		w.fields = append(w.fields, hpack.HeaderField{Name: "content-type", Value: http.DetectContentType(small)})
	}
	if !w.dated {
		w.fields = append(w.fields, hpack.HeaderField{Name: "date", Value: c.s.date.text()})
	}
	if last && w.declared < 0 && w.hasBody() && (w.written > 0 || w.st.request.Method != http.MethodHead) {
		w.fields = append(w.fields, hpack.HeaderField{Name: "content-length", Value: strconv.FormatInt(w.written, 10)})
	}
	c.writeFields(w.status, w.fields)
	c.appendHeaders(w.st.id, end && len(small) == 0)
}

// trailer returns the trailers of a complete response: announced keys, and keys with http.TrailerPrefix.
func (w *response) trailer(last bool) []hpack.HeaderField {
	if !last {
		return nil
	}
	found := http.Header{}
	for _, key := range w.trailers {
		if values, ok := w.header[key]; ok {
			found[key] = values
		}
	}
	for key, values := range w.header {
		if name, ok := strings.CutPrefix(key, http.TrailerPrefix); ok {
			found[http.CanonicalHeaderKey(name)] = values
		}
	}
	if len(found) == 0 {
		return nil
	}
	return appendFields(nil, found)
}

// SetReadDeadline is called by http.ResponseController.
func (w *response) SetReadDeadline(t time.Time) error {
	w.st.setDeadline(reads, t, w.st.body.late)
	return nil
}

// SetWriteDeadline is called by http.ResponseController. After the deadline the stream is reset.
func (w *response) SetWriteDeadline(t time.Time) error {
	w.st.setDeadline(writes, t, func() { w.st.fail(os.ErrDeadlineExceeded) })
	return nil
}

// EnableFullDuplex is called by http.ResponseController. HTTP/2 always allows it.
func (w *response) EnableFullDuplex() error { return nil }
