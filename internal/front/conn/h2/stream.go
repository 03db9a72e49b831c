package h2

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
)

// stream is a request and its response. Its fields are guarded by the conn's mutex, except for request, which the
// handler owns.
type stream struct {
	c       *conn
	id      uint32
	request *http.Request
	handler http.Handler
	cancel  context.CancelFunc

	wake     sync.Cond // the window has opened, data has arrived, or the stream has ended
	window   int64     // bytes of DATA that the client accepts
	credit   credit
	declared int64 // Content-Length, -1 if unknown
	got      int64 // bytes of the body so far
	received bool  // the client has sent all of the request
	err      error // why the stream has ended
	body     body
	response response
	deadline [2]deadline // of reads and of writes
	carried  carried
}

// serve runs the handler.
func (st *stream) serve() {
	defer func() {
		if st.carried.rest != nil {
			st.carryOn()
			return
		}
		st.finish()
	}()
	defer func() {
		if value := recover(); value != nil {
			st.abort(value)
		}
	}()
	st.handler.ServeHTTP(&st.response, st.request)
	if st.carried.rest == nil {
		st.response.complete()
	}
}

// abort resets the stream of a handler that has panicked.
func (st *stream) abort(value any) {
	if value != http.ErrAbortHandler {
		st.c.s.config.Failed(st.request, value)
	}
	st.c.mu.Lock()
	defer st.c.mu.Unlock()
	st.fail(http.ErrAbortHandler)
}

// finish removes the stream of a response that is complete.
func (st *stream) finish() {
	c := st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.err == nil && !st.received {
		c.appendReset(st.id, http2.ErrCodeNo) // the rest of the body is not needed
	}
	st.end(errClosed)
	st.body.close()
	for i := range st.deadline {
		st.deadline[i].stop()
	}
	c.running--
	c.startNext()
	c.leaveIfDone()
	c.flush()
}

// end ends the stream: readers and writers return err, or an earlier error. Frames that are already in the output are
// still sent.
func (st *stream) end(err error) {
	if st.err != nil {
		return
	}
	st.err = err
	delete(st.c.streams, st.id)
	st.cancel()
	st.wake.Broadcast()
	st.Wake()
	st.c.output.moved.Broadcast()
}

// opened wakes a writer that waits for a window.
func (st *stream) opened() {
	st.wake.Broadcast()
	if len(st.carried.held) > 0 {
		st.Wake()
	}
}

// fail ends the stream and resets it at the client.
func (st *stream) fail(err error) {
	if st.err != nil {
		return
	}
	st.c.appendReset(st.id, http2.ErrCodeInternal)
	st.end(err)
	st.c.flush()
}

// receivedAll records the end of the request.
func (st *stream) receivedAll() error {
	st.received = true
	if st.declared >= 0 && st.got != st.declared {
		return http2.StreamError{StreamID: st.id, Code: http2.ErrCodeProtocol}
	}
	st.wake.Broadcast()
	return nil
}

// trailers processes HEADERS behind the body.
func (st *stream) trailers(f *http2.MetaHeadersFrame) error {
	malformed := http2.StreamError{StreamID: st.id, Code: http2.ErrCodeProtocol}
	if st.received {
		malformed.Code = http2.ErrCodeStreamClosed
		return malformed
	}
	if !f.StreamEnded() || len(f.PseudoFields()) > 0 {
		return malformed
	}
	trailer := http.Header{}
	for _, field := range f.RegularFields() {
		key := canonical(field.Name)
		if !httpguts.ValidTrailerHeader(key) {
			return malformed
		}
		if _, announced := st.request.Trailer[key]; announced {
			trailer[key] = append(trailer[key], field.Value)
		}
	}
	st.body.trailer = trailer
	return st.receivedAll()
}

// write appends p as DATA. It waits for room in the output and for the client's windows.
func (st *stream) write(p []byte, last bool) error {
	c := st.c
	for {
		if st.err != nil {
			return st.err
		}
		switch {
		case len(p) > 0 && (c.output.full() || st.window <= 0 || c.window <= 0):
			st.await()
			continue
		case len(p) == 0 && !last:
			return nil
		}
		if p = st.frame(p, last); len(p) == 0 {
			return nil
		}
	}
}

// frame appends as much of p as fits into one DATA frame and the windows, and returns the rest. Without p, it appends
// an empty frame.
func (st *stream) frame(p []byte, last bool) (rest []byte) {
	c := st.c
	n := 0
	if len(p) > 0 {
		n = int(min(int64(len(p)), int64(frameSize), st.window, c.window))
	}
	var flags http2.Flags
	if last && n == len(p) {
		flags = http2.FlagDataEndStream
	}
	b := c.appendFrame(http2.FrameData, flags, st.id, n)
	*b = append(*b, p[:n]...)
	st.window -= int64(n)
	c.window -= int64(n)
	return p[n:]
}

// await waits until it may be possible to write.
func (st *stream) await() {
	c := st.c
	switch {
	case !c.output.sending && c.output.buffer != nil:
		c.flush()
	case c.output.full():
		c.output.moved.Wait()
	default:
		st.wake.Wait()
	}
}

// deadline ends reads or writes of a stream at a time.
type deadline struct {
	timer *time.Timer
	set   int // number of changes: an earlier timer that has fired already is ignored
}

func (d *deadline) stop() {
	d.set++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// reads and writes index stream.deadline.
const (
	reads = iota
	writes
)

// setDeadline sets the time of one of the deadlines; a zero time removes it.
func (st *stream) setDeadline(which int, t time.Time, passed func()) {
	c := st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	d := &st.deadline[which]
	d.stop()
	if t.IsZero() || st.err != nil {
		return
	}
	set := d.set
	d.timer = time.AfterFunc(time.Until(t), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if d.set == set {
			passed()
		}
	})
}
