package h2

import (
	"time"

	"golang.org/x/net/http2"
)

// keepalive runs at each tick of the connection's clock. It sends a PING to a quiet client, closes a lost connection,
// and ends one that has been idle.
func (c *conn) keepalive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.quiet++
	switch quiet := time.Duration(c.quiet) * tick; {
	case quiet >= c.s.config.Quiet+c.s.config.Lost:
		c.broken(errLost)
		return
	case quiet == c.s.config.Quiet:
		b := c.appendFrame(http2.FramePing, 0, 0, 8)
		*b = append(*b, "bowsprit"...)
		c.flush()
	}
	c.idle++
	if len(c.streams) > 0 || c.running > 0 {
		c.idle = 0
	}
	if time.Duration(c.idle)*tick >= c.s.config.Idle {
		c.goAway()
	}
	c.clock.Reset(tick)
}

// leave tells the client to open no more streams.
func (c *conn) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.goAway()
}

func (c *conn) goAway() {
	if c.leaving || c.err != nil {
		return
	}
	c.leaving = true
	c.appendGoAway(http2.ErrCodeNo)
	c.leaveIfDone()
	c.flush()
}

// leaveIfDone ends a connection after GOAWAY and the last response. The client reads the rest, finds the end, and
// disconnects. A close with unread bytes from the client would discard bytes that the client has not read.
func (c *conn) leaveIfDone() {
	if !c.leaving || c.finished || len(c.streams) > 0 || c.running > 0 {
		return
	}
	c.finished = true
	go func() {
		c.closeWrite(c.s.config.Leave)
		_ = c.socket.SetReadDeadline(time.Now().Add(c.s.config.Leave)) // ends read
	}()
}

// closeWrite sends the rest and the end of the connection, for at most wait.
func (c *conn) closeWrite(wait time.Duration) {
	_ = c.socket.SetWriteDeadline(time.Now().Add(wait))
	c.awaitSender()
	c.mu.Lock()
	for c.output.sending {
		c.output.moved.Wait()
	}
	c.output.sending = true // no other goroutine sends behind the end
	c.mu.Unlock()
	_ = c.tls.CloseWrite() // leaves a deadline that has passed
	_ = c.socket.SetWriteDeadline(time.Now().Add(wait))
	_ = c.socket.Send() // on error the client has left
	c.mu.Lock()
	c.output.sending = false
	c.output.moved.Broadcast()
	c.mu.Unlock()
}
