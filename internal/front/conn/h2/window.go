package h2

import "golang.org/x/net/http2"

const (
	// initialWindow is the window of a connection, and of a stream before the first settings (RFC 9113, 6.9.2).
	initialWindow = 65535
	windowMost    = 1<<31 - 1
)

// giveBack frees n bytes of the connection. It returns whether frames must be flushed.
func (c *conn) giveBack(n int) bool {
	update := c.credit.give(n)
	if update > 0 {
		c.appendWindowUpdate(0, update)
	}
	return update > 0
}

// windowUpdate processes a WINDOW_UPDATE.
func (c *conn) windowUpdate(f *http2.WindowUpdateFrame) error {
	more := int64(f.Increment)
	if f.StreamID == 0 {
		if c.window+more > windowMost {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		if c.window += more; c.window <= more { // it was closed
			for _, st := range c.streams {
				st.opened()
			}
		}
		return nil
	}
	st := c.streams[f.StreamID]
	if st == nil {
		return c.known(f.StreamID)
	}
	if st.window+more > windowMost {
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	if st.window += more; st.window <= more {
		st.opened()
	}
	return nil
}

// resize applies a change of the initial window to all streams.
func (c *conn) resize(size int64) error {
	more := size - c.opened
	c.opened = size
	for _, st := range c.streams {
		if st.window+more > windowMost {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		st.window += more
		st.opened()
	}
	return nil
}
