package h2

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// readSize is the size of the read buffer: the frames of a few requests without a body.
const readSize = 512

var (
	errClosed = errors.New("h2: the connection is closed")
	errLost   = errors.New("h2: the client does not respond")
	errReset  = errors.New("h2: the client has reset the stream")
)

// conn is one connection. The goroutine of Serve reads its frames.
type conn struct {
	s       *Server
	tls     *tls.Conn
	socket  Socket
	handler http.Handler
	base    context.Context
	state   tls.ConnectionState // of all its requests
	remote  string
	frames  *http2.Framer // the reader's own
	clock   *time.Timer   // of keepalive
	woken   woken

	mu     sync.Mutex // guards the following, and all streams
	output output
	header *hpack.Encoder // writes to block
	block  bytes.Buffer
	window int64 // bytes of DATA that the client accepts on the connection
	opened int64 // initial window of a stream
	credit credit

	streams  map[uint32]*stream
	last     uint32    // the highest stream of the client
	running  int       // handlers, and streams that were handed over
	cramped  []*stream // that were handed over, and wait for room in the output
	queued   []*stream // requests that wait for other handlers to end
	quiet    int       // ticks since the last frame
	idle     int       // ticks without a stream
	leaving  bool      // GOAWAY has been written
	finished bool      // the last response has been written: nothing but an end follows
	unacked  int       // SETTINGS that the client has not acknowledged
	err      error     // why the connection has ended
}

// Serve serves the connection and returns when it has ended. ctx is the parent of the contexts of its requests. TLS has
// completed its handshake over socket.
func (s *Server) Serve(ctx context.Context, c *tls.Conn, socket Socket, handler http.Handler) {
	sc := &conn{
		s: s, tls: c, socket: socket, handler: handler, state: c.ConnectionState(), remote: c.RemoteAddr().String(),
		window: initialWindow, opened: initialWindow, streams: map[uint32]*stream{},
		credit: credit{left: int64(s.config.ConnWindow), whole: int64(s.config.ConnWindow)},
	}
	var cancel context.CancelFunc
	sc.base, cancel = context.WithCancel(ctx)
	defer cancel()
	sc.header = hpack.NewEncoder(&sc.block)
	sc.output.moved.L = &sc.mu
	socket.Hold()
	s.add(sc)
	defer s.remove(sc)
	err := sc.begin()
	if err == nil {
		sc.clock = time.AfterFunc(tick, sc.keepalive)
		defer sc.clock.Stop()
		err = sc.read()
	}
	sc.end(err)
}

// begin exchanges the preface and the first settings.
func (c *conn) begin() error {
	_ = c.socket.SetReadDeadline(time.Now().Add(prefaceWait))
	in := bufio.NewReaderSize(c.tls, readSize)
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(in, preface); err != nil {
		return err
	}
	if string(preface) != http2.ClientPreface {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	_ = c.socket.SetReadDeadline(time.Time{})
	f := http2.NewFramer(io.Discard, in)
	f.SetReuseFrames()
	f.SetMaxReadFrameSize(uint32(c.s.config.MaxReadFrame))
	f.ReadMetaHeaders = hpack.NewDecoder(tableSize, nil)
	f.MaxHeaderListSize = c.s.config.headerList()
	c.frames = f

	c.mu.Lock()
	defer c.mu.Unlock()
	c.appendSettings(
		http2.Setting{ID: http2.SettingMaxFrameSize, Val: uint32(c.s.config.MaxReadFrame)},
		http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(c.s.config.MaxStreams)},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: c.s.config.headerList()},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(c.s.config.StreamWindow)},
	)
	c.unacked++
	if more := c.s.config.ConnWindow - initialWindow; more > 0 {
		c.appendWindowUpdate(0, more)
	}
	c.flush()
	return nil
}

// read processes frames until the connection ends.
func (c *conn) read() error {
	first := true
	for {
		f, err := c.frames.ReadFrame()
		if _, settings := f.(*http2.SettingsFrame); first && err == nil && !settings {
			err = http2.ConnectionError(http2.ErrCodeProtocol)
		}
		first = false
		if err == nil {
			err = c.process(f)
		}
		if err == nil {
			continue
		}
		var stream http2.StreamError
		if !errors.As(err, &stream) {
			return err
		}
		if err := c.refuse(stream); err != nil {
			return err
		}
	}
}

// refuse answers an error of one stream by RST_STREAM.
func (c *conn) refuse(e http2.StreamError) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, e.StreamID) // a malformed request has used its number, too
	if st := c.streams[e.StreamID]; st != nil {
		st.end(e)
	}
	c.appendReset(e.StreamID, e.Code)
	return c.control()
}

// end ends all streams and closes the connection. err is why.
func (c *conn) end(err error) {
	c.mu.Lock()
	code := errorCode(err)
	if code != http2.ErrCodeNo {
		c.appendGoAway(code)
	}
	c.err = cmp.Or(c.err, err, errClosed)
	for _, st := range c.streams {
		st.end(errClosed)
	}
	c.queued = nil
	c.mu.Unlock()
	if code != http2.ErrCodeNo {
		c.closeWrite(closeWait)
		c.seeOff(seeOffWait) // a close with unread bytes would discard the GOAWAY
	}
	_ = c.socket.Close()
	c.awaitSender()
}

const (
	// closeWait limits the time to send the end of a connection after an error.
	closeWait = time.Second
	// seeOffWait limits the time for the client to receive it and to disconnect.
	seeOffWait = 5 * time.Second
)

// seeOff reads until the client disconnects, for at most wait and 4 MiB.
func (c *conn) seeOff(wait time.Duration) {
	_ = c.socket.SetReadDeadline(time.Now().Add(wait))
	_, _ = io.Copy(io.Discard, io.LimitReader(c.tls, 4<<20))
}

// errorCode returns the code with which an error ends the connection; ErrCodeNo if the client has left.
func errorCode(err error) http2.ErrCode {
	var connection http2.ConnectionError
	switch {
	case errors.As(err, &connection):
		return http2.ErrCode(connection)
	case errors.Is(err, http2.ErrFrameTooLarge):
		return http2.ErrCodeFrameSize
	}
	return http2.ErrCodeNo
}
