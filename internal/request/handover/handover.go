// Package handover is the seam between a handler that hands its response over, and the connection that carries it on.
//
// A watch sends little for a long time, and a goroutine of its own costs more memory and CPU than the events. So its
// handler sends the headers and the initial state, hands the rest of the response over, and returns. From then on the
// connection takes turns for all its streams in one goroutine. docs/design/http2.md has the reasons and the figures.
//
// Every ResponseWriter between the handler and the connection implements Taker, and adds its own work to the Rest. If
// one does not, the handler serves the response to its end.
package handover

import "time"

// Rest is the rest of a response. Its methods are called in turn, in goroutines of the connection, after the handler
// has returned.
type Rest interface {
	// Turn writes everything that is ready to the handler's ResponseWriter, without Flush. Written bytes must not
	// change. Turn does not wait. It returns the time of the next turn, zero if only Stream.Wake causes one, and
	// whether the response is complete.
	Turn(now time.Time) (next time.Time, complete bool)
	// Over is called once, after the last turn: the response is complete, or the stream has ended before. It may wait.
	Over()
}

// Stream is the stream of a response that was handed over.
type Stream interface {
	// Wake causes a turn soon. Any goroutine may call it, at any time and under locks. It does not wait.
	Wake()
	// Full reports whether written bytes wait for the client, so that nothing should be written. A turn follows when
	// they have been sent. It is for Turn only.
	Full() bool
}

// Taker is implemented by ResponseWriters that can take the rest of a response over.
type Taker interface {
	// TakeOver takes the rest of the response over when the handler returns, which must follow soon and without
	// another use of the ResponseWriter. It returns nil, and does nothing, if that is impossible.
	TakeOver(rest Rest) Stream
}

// To hands the rest of a response over. It returns nil if the handler must serve it to its end.
func To(w any, rest Rest) Stream {
	if taker, ok := w.(Taker); ok {
		return taker.TakeOver(rest)
	}
	return nil
}
