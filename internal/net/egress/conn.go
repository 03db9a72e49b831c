package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/status"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

// conn is a connection through a Konnectivity server: a call of its ProxyService. It has no half close, because the
// protocol has none.
type conn struct {
	stream client.ProxyService_ProxyClient
	end    context.CancelFunc // ends the call at once
	at     *progress
	id     int64
	remote addr
	local  addr

	received chan []byte // by the receiving goroutine; unbuffered: unread data blocks the other end
	over     chan struct{}
	why      error // once over is closed: why the call has ended; io.EOF if the other end has closed
	closed   chan struct{}
	closing  sync.Once

	reading struct {
		sync.Mutex
		rest []byte // of the last packet
	}
	sending sync.Mutex
	read    deadline
	write   deadline
}

var _ net.Conn = (*conn)(nil)

const (
	// maxPiece is the largest payload of a packet, as in the upstream server.
	maxPiece = 32 << 10
	// closeWait is how long a closed connection may take to send its pending data.
	closeWait = 10 * time.Second
)

// newConn returns an established connection; ends are the far end and the socket here.
func newConn(
	stream client.ProxyService_ProxyClient, end context.CancelFunc, at *progress, id int64, ends [2]addr,
) *conn {
	c := &conn{
		stream: stream, end: end, at: at, id: id, remote: ends[0], local: ends[1], received: make(chan []byte),
		over: make(chan struct{}), closed: make(chan struct{}),
	}
	go c.receive()
	return c
}

// receive delivers data until the call is over. Once the connection is closed it drops the data.
func (c *conn) receive() {
	defer c.end()
	defer close(c.over)
	defer c.at.to("")
	for {
		p, err := c.stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			c.why = io.EOF
			return
		case err != nil:
			c.why = fmt.Errorf("the connection to the Konnectivity server broke: %s",
				foreign.Text(status.Convert(err).Message()))
			return
		}
		switch p.Type {
		case client.PacketType_DATA:
			if data := p.GetData().GetData(); len(data) > 0 {
				select {
				case c.received <- data:
				case <-c.closed:
				}
			}
		case client.PacketType_CLOSE_RSP:
			c.why = io.EOF
			if text := p.GetCloseResponse().GetError(); text != "" {
				c.why = fmt.Errorf("closed by the Konnectivity server: %s", foreign.Text(text))
			}
			return
		}
	}
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if len(c.reading.rest) == 0 {
		expired := c.read.expired()
		select { // data before a deadline or an end is delivered, unless the connection is closed
		case <-c.closed:
			return 0, net.ErrClosed
		case <-expired:
			return 0, os.ErrDeadlineExceeded
		default:
		}
		select {
		case c.reading.rest = <-c.received:
		case <-c.over:
			return 0, c.why
		case <-c.closed:
			return 0, net.ErrClosed
		case <-expired:
			return 0, os.ErrDeadlineExceeded
		}
	}
	n := copy(b, c.reading.rest)
	c.reading.rest = c.reading.rest[n:]
	return n, nil
}

// Write implements net.Conn. A deadline that passes while it waits ends the connection.
func (c *conn) Write(b []byte) (n int, err error) {
	c.sending.Lock()
	defer c.sending.Unlock()
	expired := c.write.expired()
	select {
	case <-c.closed:
		return 0, net.ErrClosed
	case <-expired:
		return 0, os.ErrDeadlineExceeded
	default:
	}
	if c.write.set() {
		done := make(chan struct{})
		defer close(done)
		go func() {
			select {
			case <-expired:
				c.end()
			case <-done:
			}
		}()
	}
	for len(b) > 0 {
		piece := b[:min(len(b), maxPiece)]
		err := c.stream.Send(&client.Packet{Type: client.PacketType_DATA, Payload: &client.Packet_Data{
			Data: &client.Data{ConnectID: c.id, Data: piece},
		}})
		if err != nil {
			return n, c.broken(expired)
		}
		n, b = n+len(piece), b[len(piece):]
	}
	return n, nil
}

// broken returns the error of a Write, or nil if sending is possible.
func (c *conn) broken(expired <-chan struct{}) error {
	select {
	case <-expired:
		return os.ErrDeadlineExceeded
	case <-c.closed:
		return net.ErrClosed
	default:
	}
	<-c.over // the call is over for its receiver, too
	if errors.Is(c.why, io.EOF) {
		return io.ErrClosedPipe
	}
	return c.why
}

// Close implements net.Conn. It does not wait: pending data is sent in the background, for some seconds at most. A
// Write or Read in progress ends.
func (c *conn) Close() error {
	c.closing.Do(func() {
		close(c.closed)
		c.at.to(statusClosing)
		if !c.sending.TryLock() { // a Write waits; its data is lost
			c.end()
			return
		}
		late := time.AfterFunc(closeWait, c.end)
		go func() {
			defer c.sending.Unlock()
			_ = c.stream.Send(&client.Packet{Type: client.PacketType_CLOSE_REQ, Payload: &client.Packet_CloseRequest{
				CloseRequest: &client.CloseRequest{ConnectID: c.id},
			}})
			_ = c.stream.CloseSend()
			<-c.over
			late.Stop()
		}()
	})
	return nil
}

// LocalAddr implements net.Conn: the socket of the Konnectivity server.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn. It returns the dialled address.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.read.at(t)
	c.write.at(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error { c.read.at(t); return nil }

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { c.write.at(t); return nil }

// addr is the address of one end of a tunnelled connection.
type addr string

// Network implements net.Addr.
func (addr) Network() string { return "konnectivity" }

// String implements net.Addr.
func (a addr) String() string { return string(a) }

// deadline is a point in time that can be moved. The zero value is none.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	done  chan struct{} // closed when it has passed; nil: not requested yet
}

// at moves the deadline; the zero time means none. Current waiters wait for the new one, unless the old one has passed.
func (d *deadline) at(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.doneLocked() // it is about to be closed, or is
	}
	d.timer = nil
	select {
	case <-d.doneLocked():
		d.done = make(chan struct{})
	default:
	}
	if t.IsZero() {
		return
	}
	done := d.doneLocked()
	if wait := time.Until(t); wait > 0 {
		d.timer = time.AfterFunc(wait, func() { close(done) })
	} else {
		close(done)
	}
}

// expired returns a channel that is closed when the deadline passes.
func (d *deadline) expired() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.doneLocked()
}

// set reports whether there is a deadline that has not passed.
func (d *deadline) set() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.timer != nil
}

func (d *deadline) doneLocked() chan struct{} {
	if d.done == nil {
		d.done = make(chan struct{})
	}
	return d.done
}
