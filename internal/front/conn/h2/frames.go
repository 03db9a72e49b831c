package h2

import (
	"golang.org/x/net/http2"
)

// queuedMost bounds the requests of a connection that wait for running handlers, as a multiple of MaxStreams. They only
// exist if the client resets streams whose handlers still run.
const queuedMost = 4

// process handles one frame.
func (c *conn) process(f http2.Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quiet = 0
	if c.err != nil {
		return c.err
	}
	if id := f.Header().StreamID; c.leaving && id > c.last {
		if f, ok := f.(*http2.DataFrame); ok {
			return c.discard(int(f.Length))
		}
		return nil // GOAWAY has told the client that these are ignored
	}
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		return c.headers(f)
	case *http2.DataFrame:
		return c.data(f)
	case *http2.WindowUpdateFrame:
		return c.windowUpdate(f)
	case *http2.RSTStreamFrame:
		return c.reset(f)
	case *http2.SettingsFrame:
		return c.settings(f)
	case *http2.PingFrame:
		return c.ping(f)
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
		}
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil // GOAWAY: the client closes the connection; others are extensions
}

// known returns an error for a frame of a stream that the client has not opened yet. Frames of streams that have ended
// may still be under way.
func (c *conn) known(id uint32) error {
	if id > c.last || id%2 == 0 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil
}

// headers begins a request, or ends one with trailers.
func (c *conn) headers(f *http2.MetaHeadersFrame) error {
	id := f.StreamID
	if id%2 != 1 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if f.HasPriority() && f.Priority.StreamDep == id {
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
	}
	if st := c.streams[id]; st != nil {
		return st.trailers(f)
	}
	if id <= c.last {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.last = id
	if len(c.streams) >= c.s.config.MaxStreams {
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeRefusedStream}
	}
	st, err := c.newStream(f)
	if err != nil {
		return err
	}
	c.streams[id] = st
	switch {
	case c.running < c.s.config.MaxStreams:
		c.start(st)
	case len(c.queued) >= queuedMost*c.s.config.MaxStreams:
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	default:
		c.queued = append(c.queued, st)
	}
	return nil
}

// start runs the handler of a request.
func (c *conn) start(st *stream) {
	c.running++
	go st.serve()
}

// startNext runs the first request that waits and has not ended meanwhile.
func (c *conn) startNext() {
	for len(c.queued) > 0 && c.running < c.s.config.MaxStreams {
		st := c.queued[0]
		c.queued[0] = nil
		c.queued = c.queued[1:]
		if st.err == nil {
			c.start(st)
		}
	}
}

// data hands a part of a body to its stream.
func (c *conn) data(f *http2.DataFrame) error {
	size := int(f.Length) // with padding
	st := c.streams[f.StreamID]
	if st == nil || st.received {
		if err := c.known(f.StreamID); err != nil {
			return err
		}
		if err := c.discard(size); err != nil {
			return err
		}
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeStreamClosed}
	}
	if !c.credit.take(size) {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	if !st.credit.take(size) {
		c.giveBack(size)
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	data := f.Data()
	if st.got += int64(len(data)); st.declared >= 0 && st.got > st.declared {
		c.giveBack(size)
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
	}
	unused := size - len(data)
	if st.body.closed {
		unused = size
	} else {
		st.body.put(data)
	}
	if unused > 0 && c.giveBack(unused) {
		c.flush()
	}
	if f.StreamEnded() {
		return st.receivedAll()
	}
	return nil
}

// discard accounts for DATA of a stream that has ended.
func (c *conn) discard(size int) error {
	if !c.credit.take(size) {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	if c.giveBack(size) {
		c.flush()
	}
	return nil
}

// reset processes RST_STREAM.
func (c *conn) reset(f *http2.RSTStreamFrame) error {
	st := c.streams[f.StreamID]
	if st == nil {
		return c.known(f.StreamID)
	}
	st.end(errReset)
	c.leaveIfDone()
	return nil
}

// settings processes and acknowledges SETTINGS.
func (c *conn) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		if c.unacked--; c.unacked < 0 {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		return nil
	}
	if f.NumSettings() > 100 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if err := f.ForeachSetting(c.setting); err != nil {
		return err
	}
	c.appendFrame(http2.FrameSettings, http2.FlagSettingsAck, 0, 0)
	return c.control()
}

func (c *conn) setting(s http2.Setting) error {
	if err := s.Valid(); err != nil {
		return err
	}
	switch s.ID {
	case http2.SettingHeaderTableSize:
		c.header.SetMaxDynamicTableSize(min(s.Val, tableSize))
	case http2.SettingInitialWindowSize:
		return c.resize(int64(s.Val))
	}
	// MAX_FRAME_SIZE only allows larger frames than frameSize. Server push is not used.
	return nil
}

// ping answers PING.
func (c *conn) ping(f *http2.PingFrame) error {
	if f.IsAck() {
		return nil
	}
	b := c.appendFrame(http2.FramePing, http2.FlagPingAck, 0, len(f.Data))
	*b = append(*b, f.Data[:]...)
	return c.control()
}
