package conn

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"

	"github.com/bowsprit/bowsprit/internal/request/reuse"
)

// gatherSize is the size of the buffer for one write to the socket: eight full TLS records. Larger writes are not
// noticeably cheaper, and each busy connection holds up to two such buffers.
const gatherSize = 128 << 10

// aheadSize is the size of the read-ahead buffer: the frames of a few requests without a body.
const aheadSize = 512

const (
	// closeWait limits the time to send pending bytes while a connection closes.
	closeWait = 5 * time.Second
	// leaveWait is that limit after a farewell, and then the limit for the client to read and disconnect. The HTTP/2
	// server closes a second after its last frame was gathered. If a client writes to a closed connection, it loses
	// unread data, and clients do write: they send window updates.
	leaveWait = 30 * time.Second
)

// gatherer is an HTTP/2 connection that combines writes. The HTTP/2 server writes each frame separately, at most 16 KiB
// and 9 bytes: that makes two TLS records and two system calls for each frame of a list, and a system call for each of
// several small responses that are ready at the same time. A gatherer copies frames into a buffer and returns at once;
// its goroutine encrypts and sends the gathered frames.
//
// A later write returns the error of an earlier one. While a full buffer waits for the socket, writes block, so a
// client that does not read stops only its own connection.
type gatherer struct {
	*tls.Conn
	below   *corked // the connection below Conn; nil if it cannot be held back
	sending func()  // called before gathered bytes are sent

	farewell farewell

	reading sync.Mutex      // guards the following
	ahead   []byte          // bytes read but not yet requested, in room
	room    [aheadSize]byte // memory of ahead

	mu     sync.Mutex
	moved  sync.Cond // buffer has been taken, or err is set
	wake   chan struct{}
	buffer *[]byte // nil if empty
	idle   bool    // the goroutine waits for wake
	err    error
	closed bool
	over   bool          // all bytes that the client needs have been written
	ended  bool          // the end was sent to the client; the goroutine's own
	done   chan struct{} // closed when the goroutine has ended
}

var gatherBuffers = reuse.Bytes(gatherSize)

func newGatherer(c *tls.Conn, sending func()) *gatherer {
	g := &gatherer{Conn: c, sending: sending, farewell: newFarewell(), wake: make(chan struct{}, 1),
		done: make(chan struct{})}
	g.moved.L = &g.mu
	g.below, _ = c.NetConn().(*corked)
	go g.send()
	return g
}

// Read implements net.Conn. The HTTP/2 server reads the header of each frame, and then the rest, which has usually
// arrived together with it. Copying it from this buffer is cheaper than a read from crypto/tls.
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
		g.ahead = g.room[:n] // the next read returns an error that came with it
		g.farewell.read(g.ahead)
	}
	n := copy(p, g.ahead)
	g.ahead = g.ahead[n:]
	return n, nil
}

// Write copies p into the buffer. After the last bytes that the client needs it drops p.
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
			g.buffer = gatherBuffers.Get()
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

// send writes the gathered bytes until the connection is closed or broken.
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

// Close sends the gathered bytes, then closes the connection. After a farewell it first waits for the client to
// disconnect.
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

// seeOff reads until the client disconnects, which it does at the end of the data, or until leaveWait is over.
func (g *gatherer) seeOff() {
	if g.Conn.CloseWrite() != nil {
		return
	}
	_ = g.SetReadDeadline(time.Now().Add(leaveWait))
	_, _ = io.Copy(io.Discard, g)
}
