package rest

import (
	"context"
	"io"
	"net/http"
	"time"

	"golang.org/x/net/websocket"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// messages sends the frames of a watch over a WebSocket, one message each: text for text forms, otherwise binary.
type messages struct {
	conn *websocket.Conn
	form form
}

// serveSocket upgrades the connection to a WebSocket (RFC 6455) and runs a watch on it. Errors from here on reach the
// client through the handshake or the end of the connection. Messages from the client are ignored, except the close.
func serveSocket(ctx context.Context, w http.ResponseWriter, r *http.Request, f form, run func(context.Context, sink)) {
	websocket.Handler(func(conn *websocket.Conn) {
		ctx, cancel := context.WithCancel(ctx)
		left := make(chan struct{})
		// When the watch is over, run and Close do not wait for a client that does not read. The limit is half of the
		// usual one, because closing TLS has its own deadline of five more seconds.
		defer context.AfterFunc(ctx, func() { _ = conn.SetWriteDeadline(time.Now().Add(giveUpAfter / 2)) })()
		defer func() {
			cancel()
			_ = conn.Close() // sends a normal closure
			<-left
		}()
		go func() {
			defer close(left)
			defer cancel()
			_, _ = io.Copy(io.Discard, conn)
		}()
		conn.PayloadType = websocket.TextFrame
		if f.Type != codec.JSON {
			conn.PayloadType = websocket.BinaryFrame
		}
		run(ctx, messages{conn, f})
	}).ServeHTTP(w, r)
}

func (m messages) put(frame []byte) bool {
	if m.form.Type == codec.Protobuf {
		frame = frame[4:] // drop the length; a message has its own
	}
	_, err := m.conn.Write(frame)
	return err == nil
}

func (m messages) putParts(head, body, tail []byte) bool {
	frame := make([]byte, 0, len(head)+len(body)+len(tail))
	return m.put(append(append(append(frame, head...), body...), tail...))
}

// push does nothing: messages are sent one by one.
func (m messages) push() bool { return true }

func (m messages) full() bool { return false }
