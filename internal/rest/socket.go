package rest

import (
	"context"
	"io"
	"net/http"
	"time"

	"golang.org/x/net/websocket"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// messages sends the frames of a watch over a WebSocket, one message each: text if the form is, else binary.
type messages struct {
	conn *websocket.Conn
	form form
}

// serveSocket takes the connection over as a WebSocket (RFC 6455) and runs a watch on it. What goes wrong from here on
// the client learns from the handshake or the end of the connection. A client is not listened to, but for its leaving.
func serveSocket(ctx context.Context, w http.ResponseWriter, r *http.Request, f form, run func(context.Context, sink)) {
	websocket.Handler(func(conn *websocket.Conn) {
		ctx, cancel := context.WithCancel(ctx)
		left := make(chan struct{})
		// A client that does not read is not waited for when the watch is over, in run and in Close: half as long as
		// others, because the end of TLS, which has a deadline of its own, takes five seconds more with it.
		defer context.AfterFunc(ctx, func() { _ = conn.SetWriteDeadline(time.Now().Add(giveUpAfter / 2)) })()
		defer func() {
			cancel()
			_ = conn.Close() // says that it is the end, and that all is well
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
		frame = frame[4:] // its length, which a message has by itself
	}
	_, err := m.conn.Write(frame)
	return err == nil
}

func (m messages) putParts(head, body, tail []byte) bool {
	frame := make([]byte, 0, len(head)+len(body)+len(tail))
	return m.put(append(append(append(frame, head...), body...), tail...))
}

// push does nothing: messages have gone out one by one.
func (m messages) push() bool { return true }
