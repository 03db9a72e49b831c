package conn

import (
	"errors"
	"net"
	"sync"

	"github.com/bowsprit/bowsprit/internal/request/reuse"
)

// corked is a connection that can hold back writes, so that many TLS records go out in one system call.
//
// There are two ways to use it: hold and release, and Hold with TrySend and Send of h2.Socket. Each pair belongs to one
// goroutine at a time. Other goroutines may write at any time (TLS answers a key update while
// reading): their bytes keep their place behind the bytes already held back.
type corked struct {
	net.Conn

	mu      sync.Mutex
	holding bool
	held    *[]byte // nil if empty

	// The sender's own.
	unsent *[]byte // taken from held; nil if none
	sent   int     // bytes of unsent that have been sent
	try    tryWriter
}

// corkSize holds a gatherer's buffer plus TLS's overhead for each record.
const corkSize = gatherSize + (gatherSize/(16<<10)+2)*128

var corkBuffers = reuse.Bytes(corkSize)

// errNotRead ends a connection with a client that makes TLS write but does not read.
var errNotRead = errors.New("the client does not read")

// hold holds back all writes until release.
func (c *corked) hold() {
	c.mu.Lock()
	c.holding = true
	c.mu.Unlock()
}

func (c *corked) Write(p []byte) (int, error) {
	c.mu.Lock()
	if !c.holding {
		c.mu.Unlock()
		return c.Conn.Write(p)
	}
	defer c.mu.Unlock()
	if c.held == nil {
		c.held = corkBuffers.Get()
	}
	if len(*c.held)+len(p) > 2*corkSize {
		return 0, errNotRead
	}
	*c.held = append(*c.held, p...)
	return len(p), nil
}

// release sends the held bytes, including writes by other goroutines.
func (c *corked) release() error {
	var failure error
	for {
		c.mu.Lock()
		held := c.held
		c.held = nil
		if held == nil {
			c.holding = false
			c.mu.Unlock()
			return failure
		}
		c.mu.Unlock()
		if failure == nil {
			_, failure = c.Conn.Write(*held)
		}
		*held = (*held)[:0]
		corkBuffers.Put(held)
	}
}

// corks is a listener with corked connections.
type corks struct{ net.Listener }

func (l corks) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &corked{Conn: c}, nil
}

// Hold implements h2.Socket.
func (c *corked) Hold() {
	c.try.begin(c.Conn)
	c.mu.Lock()
	c.holding = true
	c.mu.Unlock()
}

// TrySend implements h2.Socket.
func (c *corked) TrySend() (sent bool, err error) { return c.sendBy(c.try.write) }

// Send implements h2.Socket.
func (c *corked) Send() error {
	_, err := c.sendBy(c.Conn.Write)
	return err
}

// sendBy sends the held bytes by write. It returns false if write has not taken all of them.
func (c *corked) sendBy(write func([]byte) (int, error)) (sent bool, err error) {
	for {
		if c.unsent == nil {
			c.mu.Lock()
			c.unsent, c.sent, c.held = c.held, 0, nil
			c.mu.Unlock()
			if c.unsent == nil {
				return true, nil
			}
		}
		n, err := write((*c.unsent)[c.sent:])
		if c.sent += n; err != nil || c.sent < len(*c.unsent) {
			return false, err
		}
		*c.unsent = (*c.unsent)[:0]
		corkBuffers.Put(c.unsent)
		c.unsent = nil
	}
}
