package conn

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"
)

// gatherSize is how many bytes are gathered for one write to the socket: eight full TLS records. More would not make a
// write noticeably cheaper, and each busy connection holds up to two such buffers.
const gatherSize = 128 << 10

// aheadSize is how many bytes are read ahead: the frames of some requests without a body.
const aheadSize = 512

const (
	// closeWait is how long a connection that is being closed may take to send what was written before.
	closeWait = 5 * time.Second
	// leaveWait is that time after a farewell, and then how long the client may take to read it and to leave. The
	// HTTP/2 server closes a second after its last frame was gathered. What a client has still to read is lost if it
	// writes to a connection that is closed, and it does: it tells how much it has read.
	leaveWait = 30 * time.Second
)

// gatherer is an HTTP/2 connection whose writes go out together. The HTTP/2 server writes each frame by itself, at most
// 16 KiB and 9 bytes: that makes two TLS records and two system calls for each frame of a list, and a system call for
// each of the small answers that are ready at the same time. A gatherer takes frames into a buffer and returns at
// once; its goroutine encrypts and sends whatever has come together meanwhile.
//
// A write's error is returned by a later one. Writes wait while a full buffer waits for the socket, so a client that
// does not read stops the frames of its own connection and nothing else.
type gatherer struct {
	*tls.Conn
	below   *corked // what Conn writes to; nil if it cannot be held back
	sending func()  // called before what was gathered is sent

	farewell farewell

	reading sync.Mutex      // guards the following
	ahead   []byte          // what has been read and not been asked for, in room
	room    [aheadSize]byte // memory of ahead

	mu     sync.Mutex
	moved  sync.Cond // buffer has been taken, or err set
	wake   chan struct{}
	buffer *[]byte // nil if empty
	idle   bool    // the goroutine waits for wake
	err    error
	closed bool
	over   bool          // everything that the client needs has been written
	ended  bool          // and the client has been told so; the goroutine's own
	done   chan struct{} // closed when the goroutine has ended
}

var gatherBuffers = sync.Pool{New: func() any { b := make([]byte, 0, gatherSize); return &b }}

func newGatherer(c *tls.Conn, sending func()) *gatherer {
	g := &gatherer{Conn: c, sending: sending, farewell: newFarewell(), wake: make(chan struct{}, 1),
		done: make(chan struct{})}
	g.moved.L = &g.mu
	g.below, _ = c.NetConn().(*corked)
	go g.send()
	return g
}

// Read implements net.Conn. The HTTP/2 server reads the head of each frame by itself, and then the rest: what it asks
// for next mostly came with it and lies here, where it costs less than out of crypto/tls.
func (g *gatherer) Read(p []byte) (int, error) {
	g.reading.Lock()
	defer g.reading.Unlock()
	if len(g.ahead) == 0 {
		if len(p) >= len(g.room) {
			n, err := g.Conn.Read(p)
			g.farewell.read(p[:n])
			return n, err
		}
		n, err := g.Conn.Read(g.room[:])
		if n == 0 {
			return 0, err
		}
		g.ahead = g.room[:n] // an error that came with it comes again
		g.farewell.read(g.ahead)
	}
	n := copy(p, g.ahead)
	g.ahead = g.ahead[n:]
	return n, nil
}

// Write takes p into the buffer. After the last bytes that the client needs it drops them.
func (g *gatherer) Write(p []byte) (int, error) {
	complete := g.farewell.written(p)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return len(p), g.err
	}
	g.over = complete
	for n := 0; ; {
		for g.err == nil && g.buffer != nil && len(*g.buffer) == gatherSize {
			g.moved.Wait()
		}
		if g.err != nil {
			return n, g.err
		}
		if g.buffer == nil {
			g.buffer = gatherBuffers.Get().(*[]byte)
		}
		b := *g.buffer
		fits := min(len(p)-n, gatherSize-len(b))
		*g.buffer = append(b, p[n:n+fits]...)
		g.wakeSender()
		if n += fits; n == len(p) {
			return n, nil
		}
	}
}

func (g *gatherer) wakeSender() {
	if g.idle {
		g.idle = false
		g.wake <- struct{}{}
	}
}

// send writes what has been gathered until the connection is closed or broken.
func (g *gatherer) send() {
	defer close(g.done)
	for {
		g.mu.Lock()
		full := g.buffer
		g.buffer = nil
		if full == nil {
			if g.closed || g.err != nil {
				g.mu.Unlock()
				return
			}
			if g.over && !g.ended {
				g.mu.Unlock()
				g.ended = true
				// the client closes the connection then; if not, the HTTP/2 server does a second later
				_ = g.Conn.CloseWrite()
				continue
			}
			g.idle = true
			g.mu.Unlock()
			<-g.wake
			continue
		}
		g.moved.Broadcast()
		g.mu.Unlock()
		g.sending()
		err := g.out(*full)
		*full = (*full)[:0]
		gatherBuffers.Put(full)
		if err != nil {
			g.mu.Lock()
			g.err = err
			g.moved.Broadcast()
			g.mu.Unlock()
		}
	}
}

// out sends p as full TLS records, in one system call if the socket has room for them.
func (g *gatherer) out(p []byte) error {
	if g.below == nil {
		_, err := g.Conn.Write(p)
		return err
	}
	g.below.hold()
	_, err := g.Conn.Write(p)
	if sent := g.below.release(); err == nil {
		err = sent
	}
	return err
}

// Close sends what has been gathered, then closes the connection: after a farewell when the client has left.
func (g *gatherer) Close() error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return net.ErrClosed
	}
	g.closed = true
	over, wait := g.over, closeWait
	if over {
		wait = leaveWait
	}
	g.wakeSender()
	g.mu.Unlock()
	_ = g.Conn.SetWriteDeadline(time.Now().Add(wait))
	<-g.done
	if over {
		g.seeOff()
	}
	return g.Conn.Close()
}

// seeOff reads until the client has left, which it does when it has read everything, or leaveWait is over.
func (g *gatherer) seeOff() {
	if g.Conn.CloseWrite() != nil {
		return
	}
	_ = g.SetReadDeadline(time.Now().Add(leaveWait))
	_, _ = io.Copy(io.Discard, g)
}
