package h2

import (
	"encoding/binary"
	"sync"

	"golang.org/x/net/http2"

	"github.com/bowsprit/bowsprit/internal/request/reuse"
)

// outputSize is the size of the buffer of frames: eight full TLS records. Larger writes are not noticeably cheaper, and
// a busy connection holds up to two buffers.
const outputSize = 128 << 10

var buffers = reuse.Bytes(outputSize + frameSize)

// output holds the frames of a connection that have not been sent. The conn's mutex guards it.
type output struct {
	buffer  *[]byte   // nil if empty
	sending bool      // a goroutine is sending
	moved   sync.Cond // the buffer has been taken, a sender has ended, or the connection has
	control int       // bytes of responses to control frames in buffer
}

// grow returns the buffer.
func (o *output) grow() *[]byte {
	if o.buffer == nil {
		o.buffer = buffers.Get()
	}
	return o.buffer
}

// full reports whether frames with data must wait.
func (o *output) full() bool { return o.buffer != nil && len(*o.buffer) >= outputSize }

// flush sends the frames, or leaves them to the goroutine that is sending. It is called with the conn's mutex, which it
// releases while it sends. It does not wait for the client.
func (c *conn) flush() {
	if c.output.sending || c.output.buffer == nil {
		return
	}
	c.output.sending = true
	sent := c.send((Socket).TrySend)
	if sent && c.output.buffer == nil {
		c.output.sending = false
		c.output.moved.Broadcast()
		return
	}
	go c.finishSending(sent)
}

// finishSending sends the rest, and waits for the client to read it.
func (c *conn) finishSending(sent bool) {
	var err error
	if !sent {
		err = c.socket.Send()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken(err)
	for c.output.buffer != nil {
		c.send(func(s Socket) (bool, error) { return true, s.Send() })
	}
	c.output.sending = false
	c.output.moved.Broadcast()
}

// send encrypts the frames and sends them. It reports whether no bytes are left below TLS.
func (c *conn) send(out func(Socket) (bool, error)) (sent bool) {
	full := c.output.buffer
	c.output.buffer, c.output.control = nil, 0
	c.output.moved.Broadcast()
	for _, st := range c.cramped {
		st.Wake()
	}
	c.cramped = nil
	c.mu.Unlock()
	c.s.config.Sending()
	_, err := c.tls.Write(*full)
	if err == nil {
		sent, err = out(c.socket)
	}
	if cap(*full) <= 2*outputSize { // a very large header has not grown it
		*full = (*full)[:0]
		buffers.Put(full)
	}
	c.mu.Lock()
	c.broken(err)
	return sent || err != nil
}

// broken ends the connection if err is not nil: its reader notices the closed socket.
func (c *conn) broken(err error) {
	if err != nil && c.err == nil {
		c.err = err
		_ = c.socket.Close()
	}
}

// awaitSender waits until no goroutine is sending.
func (c *conn) awaitSender() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flush()
	for c.output.sending {
		c.output.moved.Wait()
	}
}

// control accounts for a response to a control frame, and flushes. A client that makes the server respond and does not
// read loses its connection.
func (c *conn) control() error {
	c.output.control += 32
	if c.output.control > controlMost {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	c.flush()
	return nil
}

// appendFrame appends the header of a frame.
func (c *conn) appendFrame(kind http2.FrameType, flags http2.Flags, stream uint32, size int) *[]byte {
	b := c.output.grow()
	*b = append(*b, byte(size>>16), byte(size>>8), byte(size), byte(kind), byte(flags))
	*b = binary.BigEndian.AppendUint32(*b, stream)
	return b
}

func (c *conn) appendSettings(settings ...http2.Setting) {
	b := c.appendFrame(http2.FrameSettings, 0, 0, 6*len(settings))
	for _, s := range settings {
		*b = binary.BigEndian.AppendUint16(*b, uint16(s.ID))
		*b = binary.BigEndian.AppendUint32(*b, s.Val)
	}
}

func (c *conn) appendWindowUpdate(stream uint32, more int) {
	b := c.appendFrame(http2.FrameWindowUpdate, 0, stream, 4)
	*b = binary.BigEndian.AppendUint32(*b, uint32(more))
}

func (c *conn) appendReset(stream uint32, code http2.ErrCode) {
	b := c.appendFrame(http2.FrameRSTStream, 0, stream, 4)
	*b = binary.BigEndian.AppendUint32(*b, uint32(code))
}

func (c *conn) appendGoAway(code http2.ErrCode) {
	b := c.appendFrame(http2.FrameGoAway, 0, 0, 8)
	*b = binary.BigEndian.AppendUint32(*b, c.last)
	*b = binary.BigEndian.AppendUint32(*b, uint32(code))
}

// appendHeaders appends c.block as HEADERS, and CONTINUATION if it is large.
func (c *conn) appendHeaders(stream uint32, last bool) {
	block := c.block.Bytes()
	kind, flags := http2.FrameHeaders, http2.Flags(0)
	if last {
		flags = http2.FlagHeadersEndStream
	}
	for {
		part := block[:min(len(block), frameSize)]
		block = block[len(part):]
		if len(block) == 0 {
			flags |= http2.FlagHeadersEndHeaders
		}
		b := c.appendFrame(kind, flags, stream, len(part))
		*b = append(*b, part...)
		if len(block) == 0 {
			c.block.Reset()
			return
		}
		kind, flags = http2.FrameContinuation, 0
	}
}
