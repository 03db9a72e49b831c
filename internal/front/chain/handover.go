package chain

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/bowsprit/bowsprit/internal/request/handover"
)

var (
	_ handover.Taker = (*exchange)(nil)
	_ handover.Rest  = (*handedOver)(nil)
)

// TakeOver implements handover.Taker for long-running requests. When the handler has returned, the steps skip their
// ends, and Over runs them after the last turn. A server that traces requests hands none over: a span ends where it
// began.
func (x *exchange) TakeOver(rest handover.Rest) handover.Stream {
	if !x.longRunning || x.code == 0 || x.conn != nil || x.chain.config.Tracer != nil {
		return nil
	}
	stream := handover.To(x.w, (*handedOver)(x))
	if stream != nil {
		x.rest = rest
	}
	return stream
}

// end runs the end of a step, unless the response was handed over. Each step with an end is listed in Over.
func (x *exchange) end(step func(*exchange)) {
	if x.rest == nil {
		step(x)
	}
}

// handedOver is an exchange with a response that was handed over.
type handedOver exchange

// Turn implements handover.Rest. A panic is recorded as by the steps audit and recover.
func (h *handedOver) Turn(now time.Time) (next time.Time, complete bool) {
	x := (*exchange)(h)
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		x.aborted = true
		if x.record != nil {
			x.record.Panicked(cause)
			x.record = nil
		}
		if cause != http.ErrAbortHandler {
			x.logPanic(fmt.Sprint(cause), debug.Stack())
		}
		panic(http.ErrAbortHandler)
	}()
	return x.rest.Turn(now)
}

// Over implements handover.Rest. It runs the ends of the steps, the last step first.
func (h *handedOver) Over() {
	x := (*exchange)(h)
	defer x.chain.measured(x)
	defer x.unlimited()
	defer x.chain.audited(x)
	defer x.chain.unshare(x)
	x.rest.Over()
}
