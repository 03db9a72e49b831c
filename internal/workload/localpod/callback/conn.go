package callback

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// conn is a connection to a port: a response body and a request body. A deadline that passes ends it.
type conn struct {
	from io.ReadCloser
	to   *io.PipeWriter
	end  context.CancelFunc
	late atomic.Bool

	mu    sync.Mutex
	timer *time.Timer // nil for no deadline
}

func newConn(from io.ReadCloser, to *io.PipeWriter, end context.CancelFunc) *conn {
	return &conn{from: from, to: to, end: end}
}

var _ net.Conn = (*conn)(nil)

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	return n, c.cause(err)
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	return n, c.cause(err)
}

func (c *conn) cause(err error) error {
	if err != nil && c.late.Load() {
		return os.ErrDeadlineExceeded
	}
	return err
}

// CloseWrite sends the end of the data.
func (c *conn) CloseWrite() error { return c.to.Close() }

// Close implements net.Conn.
func (c *conn) Close() error {
	_ = c.SetDeadline(time.Time{})
	c.end()
	_ = c.to.CloseWithError(net.ErrClosed)
	return c.from.Close()
}

// LocalAddr implements net.Conn.
func (*conn) LocalAddr() net.Addr { return address{} }

// RemoteAddr implements net.Conn.
func (*conn) RemoteAddr() net.Addr { return address{} }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	if !t.IsZero() {
		c.timer = time.AfterFunc(time.Until(t), func() {
			c.late.Store(true)
			c.end()
			_ = c.to.CloseWithError(os.ErrDeadlineExceeded)
		})
	}
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error { return c.SetDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.SetDeadline(t) }

// address is the address of an end: it has none.
type address struct{}

// Network implements net.Addr.
func (address) Network() string { return "callback" }

// String implements net.Addr.
func (address) String() string { return "client" }
