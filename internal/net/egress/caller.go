package egress

import (
	"context"
	"fmt"
)

// callerKey is under what a context has the one of the request that it belongs to.
type callerKey struct{}

// ForRequest returns the context that a request is to be sent with: connections through proxies that are dialled for it
// are given up when ctx ends. Without proxies it is ctx itself.
//
// net/http takes the end of a request away from the context that it dials with, so that another request may use the
// connection; but calls that are cancelled again and again, because the other end cannot be reached, would pile up
// dials in the proxy (kubernetes/kubernetes#140512).
func (e *Egress) ForRequest(ctx context.Context) context.Context {
	if len(e.tunnelled) == 0 {
		return ctx
	}
	return context.WithValue(ctx, callerKey{}, ctx)
}

// errLate is the cause when a dial through a proxy ends because its time is over.
var errLate = fmt.Errorf("%w after %s", context.DeadlineExceeded, dialTimeout)

// withCaller returns a context that also ends when the request ends for which ctx was made.
func withCaller(ctx context.Context) (context.Context, context.CancelFunc) {
	caller, ok := ctx.Value(callerKey{}).(context.Context)
	ctx, cancel := context.WithTimeoutCause(ctx, dialTimeout, errLate)
	if !ok {
		return ctx, cancel
	}
	ctx, because := context.WithCancelCause(ctx)
	stop := context.AfterFunc(caller, func() { because(context.Cause(caller)) })
	return ctx, func() {
		stop()
		cancel()
		because(nil)
	}
}
