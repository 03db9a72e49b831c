package h2

import (
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/bowsprit/bowsprit/internal/request/handover"
)

// carried is the state of a stream that its handler has handed over. Fields without a comment belong to the worker that
// serves the connection.
type carried struct {
	rest     handover.Rest // nil for other streams; set by the handler
	begun    atomic.Bool   // the handler has returned
	woken    atomic.Bool   // the stream is in conn.woken
	held     [][]byte      // written bytes that wait for the client or for room in the output; changed under conn.mu
	complete bool          // rest has nothing more to write
	over     bool          // no turn follows
	alarm    alarm
}

var (
	_ handover.Taker  = (*response)(nil)
	_ handover.Stream = (*stream)(nil)
)

// TakeOver implements handover.Taker. The request must be complete, since no handler is left to read its body.
func (w *response) TakeOver(rest handover.Rest) handover.Stream {
	st := w.st
	if w.FlushError() != nil || !w.hasBody() || w.declared >= 0 || len(w.trailers) > 0 ||
		st.request.Method == http.MethodHead {
		return nil
	}
	st.c.mu.Lock()
	defer st.c.mu.Unlock()
	if st.err != nil || !st.received {
		return nil
	}
	st.carried.rest = rest
	w.release()
	w.header, w.fields, w.room = nil, nil, [len(w.room)]hpack.HeaderField{} // an idle stream needs no memory for them
	return st
}

// carryOn begins the turns of a stream that was handed over, when its handler has returned.
func (st *stream) carryOn() {
	st.carried.begun.Store(true)
	st.Wake()
}

// Wake implements handover.Stream. Before the handler has returned it need not do anything, since a first turn follows.
func (st *stream) Wake() {
	if !st.carried.begun.Load() || st.carried.woken.Swap(true) {
		return
	}
	w := &st.c.woken
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams = append(w.streams, st)
	if !w.queued {
		w.queued = true
		st.c.s.turns.add(st.c)
	}
}

// Full implements handover.Stream.
func (st *stream) Full() bool { return len(st.carried.held) > 0 }

// turn sends bytes that were held, and then lets the handler's Rest write.
func (st *stream) turn(now time.Time) {
	k := &st.carried
	if k.over {
		return
	}
	ended := st.sendHeld()
	if !ended && !k.complete {
		var next time.Time
		if next, k.complete = st.takeTurn(now); k.complete {
			next = time.Time{}
		}
		st.c.s.alarms.set(st, next)
		ended = st.sendHeld()
	}
	if ended || k.complete && len(k.held) == 0 {
		k.over = true
		st.c.s.alarms.set(st, time.Time{})
		go st.conclude()
	}
}

// takeTurn calls Turn. A panic resets the stream.
func (st *stream) takeTurn(now time.Time) (next time.Time, complete bool) {
	defer func() {
		if value := recover(); value != nil {
			st.abort(value)
		}
	}()
	return st.carried.rest.Turn(now)
}

// conclude ends a stream that was handed over, as serve ends others.
func (st *stream) conclude() {
	defer st.finish()
	defer func() {
		if value := recover(); value != nil {
			st.abort(value)
		}
	}()
	st.carried.rest.Over()
	st.response.complete()
}

// sendHeld frames the bytes that were held, as far as possible. It reports whether the stream has ended.
func (st *stream) sendHeld() (ended bool) {
	c := st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	held := st.carried.held
	for len(held) > 0 && st.err == nil {
		if held[0] = st.offer(held[0]); len(held[0]) > 0 {
			break
		}
		held[0] = nil
		held = held[1:]
	}
	if len(held) == 0 || st.err != nil {
		held = nil
	}
	st.carried.held = held
	return st.err != nil
}

// put frames p, as far as possible, and holds the rest. It does not wait.
func (st *stream) put(p []byte) error {
	c := st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.err != nil {
		return st.err
	}
	if len(st.carried.held) == 0 {
		p = st.offer(p)
	}
	if len(p) > 0 && st.err == nil {
		st.carried.held = append(st.carried.held, p)
	}
	return st.err
}

// offer frames p, as far as possible, and returns the rest. If the output is full, a turn follows when it has room.
func (st *stream) offer(p []byte) (rest []byte) {
	c := st.c
	for flushed := false; len(p) > 0 && st.err == nil && st.window > 0 && c.window > 0; {
		switch {
		case !c.output.full():
			p, flushed = st.frame(p, false), false
		case flushed:
			c.cramped = append(c.cramped, st)
			return p
		default:
			flushed = true
			c.flush() // meanwhile the windows may close
		}
	}
	return p
}
