package chain

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/front/audit"
	"github.com/bowsprit/bowsprit/internal/front/conn"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/charge"
	"github.com/bowsprit/bowsprit/internal/request/handover"
)

// stallAfter is the number of response bytes before a slow client is watched. The HTTP/2 server buffers that much until
// the handler returns, so writing less never blocks, however small the client's window.
const stallAfter = 4 << 10

// exchange is one request in the chain, and the http.ResponseWriter of its handler.
type exchange struct {
	w     http.ResponseWriter // the connection's
	r     *http.Request
	chain *Chain
	ctx   context.Context // with the deadline; nil before the deadline is set
	// body is the request body for handlers; without a reader if there is no body, or before the deadline is set
	body conn.Body

	findings
	usage
	response
	expiry
	memory memory
}

// findings are the facts about a request that the steps have found.
type findings struct {
	info *request.Info // never nil after parse
	user user.Info     // never nil after authenticate
	// caller is the authenticated user, who may impersonate another. Before authenticate it is nil, except in a request
	// of Caller.Serve.
	caller user.Info
	wanted *user.DefaultInfo // the user that the caller impersonates, as requested; nil if there is none
	scope  request.Scope
	// record is the request's audit record; nil if it is not recorded, and outside of the step audit.
	record *audit.Record
	// longRunning is true of a request without a time limit.
	longRunning bool
	labels      seriesKey // of the metrics
}

// usage is the time, the seats and the memory that a request takes.
type usage struct {
	started time.Time
	took    time.Duration // until the handler returned; 0 if no step has read the clock then
	// shared is the request's use of server seats; nil if it uses none.
	shared  *shared
	account charge.Account // of the memory that the request takes
}

// response is the state of a response.
type response struct {
	code    int // 0 before it begins
	written int64
	conn    net.Conn // the connection taken over by the handler, or nil
	// late is true if the handler began its response after the deadline; its writes are dropped.
	late bool
	// rest is the rest of a response that was handed over to the connection; nil for others.
	rest handover.Rest
	// aborted is true unless the later steps have returned. It is also true after a panic in a turn of rest.
	aborted bool
}

// expiry ends reads and writes of the connection after the deadline.
type expiry struct {
	stall    stall       // of the response
	stopRead func() bool // cancels endRead before the deadline; nil if endRead is not scheduled
	release  func()      // ends the context of a long-running request

	mu   sync.Mutex // guards done
	done bool       // the connection no longer belongs to this exchange
}

// memory has the values that an exchange points to, so that they are not allocated one by one.
type memory struct {
	own    http.Request  // of exchange.r, once the request has its own context
	info   request.Info  // of findings.info
	shared shared        // of usage.shared
	timed  request.Timed // of exchange.ctx
	record *audit.Record // of findings.record, perhaps from an earlier request; nil if there is none yet
}

var (
	_ codec.Failer  = (*exchange)(nil)
	_ http.Flusher  = (*exchange)(nil)
	_ http.Hijacker = (*exchange)(nil)
)

// serve sends the request through the steps.
func (x *exchange) serve() {
	defer func() {
		if x.conn != nil {
			x.chain.hijacked.End(x.conn)
		}
	}()
	x.chain.handle(x)
}

// Header implements http.ResponseWriter.
func (x *exchange) Header() http.Header { return x.w.Header() }

// WriteHeader implements http.ResponseWriter.
func (x *exchange) WriteHeader(code int) {
	if code >= 100 && code < 200 && code != http.StatusSwitchingProtocols {
		x.w.WriteHeader(code) // an informational response
		return
	}
	if x.record != nil {
		x.record.ResponseStarted(code)
	}
	if x.late || x.code != 0 {
		return
	}
	if x.expired() {
		x.late = true
		return
	}
	if warnings := x.scope.Warnings(); warnings != nil {
		x.w.Header()["Warning"] = append(x.w.Header()["Warning"], warnings...)
	}
	x.body.LimitUnread(x.w, x.r)
	header := x.w.Header()
	if _, ok := header["Date"]; !ok {
		header["Date"] = x.chain.dates.at(x.started.Add(x.chain.since(x.started)))
	}
	x.w.WriteHeader(code) // panics for an invalid code, before the response has begun
	x.code = code
}

// Write implements http.ResponseWriter. It returns http.ErrHandlerTimeout if the response began after the deadline.
func (x *exchange) Write(p []byte) (int, error) {
	if x.code == 0 && !x.late {
		x.WriteHeader(http.StatusOK)
	}
	if x.late {
		return 0, http.ErrHandlerTimeout
	}
	x.written += int64(len(p))
	if len(p) >= largePiece && x.shared != nil && x.rest == nil { // a turn of rest must not wait
		defer x.takeTurn()()
	}
	if x.record != nil && x.written > largePiece { // smaller writes take no time
		began := x.chain.since(x.started)
		defer func() { x.scope.Latency.Spend(request.ResponseWrite, x.chain.since(x.started)-began) }()
	}
	var n int
	err := x.watched(func() (err error) {
		n, err = x.w.Write(p)
		return err
	})
	return n, err
}

// Flush implements http.Flusher.
func (x *exchange) Flush() {
	if x.code == 0 && !x.late {
		x.WriteHeader(http.StatusOK)
	}
	if x.late {
		return
	}
	_ = x.watched(func() error { return http.NewResponseController(x.w).Flush() }) // Flush has no error to return
}

// Hijack implements http.Hijacker.
func (x *exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	taken, rw, err := x.chain.hijacked.Take(x.w)
	if err != nil {
		return nil, nil, err
	}
	x.conn, x.code = taken, http.StatusSwitchingProtocols
	if x.record != nil {
		x.record.ResponseStarted(x.code)
	}
	x.scope.Waits.Release()
	return taken, rw, nil
}

// Failed implements codec.Failer.
func (x *exchange) Failed(status *metav1.Status) {
	if x.record != nil {
		x.record.ResponseStatus(status)
	}
}

// Unwrap implements the interface that http.ResponseController uses.
func (x *exchange) Unwrap() http.ResponseWriter { return x.w }

// reset discards a prepared response that has not begun, so that another can replace it.
func (x *exchange) reset() {
	x.late, x.ctx = false, nil
	header := x.w.Header()
	for key := range header {
		if !x.keeps(key) {
			delete(header, key)
		}
	}
}

// expired reports whether the deadline has passed.
func (x *exchange) expired() bool {
	return x.ctx != nil && errors.Is(x.ctx.Err(), context.DeadlineExceeded)
}

// endRead makes reads of the body fail after the deadline, because a handler that reads from a slow client does not
// check its context. Requests whose response has begun are left alone: HTTP/2 would cut off even the Status about the
// timeout.
func (x *exchange) endRead() { x.expire((*http.ResponseController).SetReadDeadline) }

// endWrite aborts a long response to a client that does not read it, after the deadline.
func (x *exchange) endWrite() { x.expire((*http.ResponseController).SetWriteDeadline) }

// expire runs in a goroutine of the context, after the context has ended: a handler that gets an error because of it
// finds the deadline passed.
func (x *exchange) expire(set func(*http.ResponseController, time.Time) error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.done {
		_ = set(http.NewResponseController(x.w), time.Unix(1, 0)) // an error means that the connection has no deadlines
	}
}

// finish ends the work of endRead and endWrite. The connection may serve another request afterwards.
func (x *exchange) finish() {
	scheduled := x.stall.x != nil && x.chain.stalls.done(&x.stall)
	if x.stopRead != nil {
		x.stopRead()
		scheduled = true
	}
	if scheduled {
		x.mu.Lock()
		x.done = true
		x.mu.Unlock()
	}
}
