package egress

import (
	"context"
	"fmt"
)

// callerKey is the context key of the context of the calling request.
type callerKey struct{}

// ForRequest returns the context for sending a request: proxied dials for the request are aborted when ctx ends.
// Without proxies it is ctx itself.
//
// net/http dials with a context that does not end with the request, so that another request may use the connection. But
// calls that are cancelled repeatedly, because the other end is unreachable, would then pile up dials in the proxy
// (kubernetes/kubernetes#140512).
func (e *Egress) ForRequest(ctx context.Context) context.Context {
	if len(e.tunnelled) == 0 {
		return ctx
	}
	return context.WithValue(ctx, callerKey{}, ctx)
}

// errLate is the cause when a dial through a proxy ends because its time is over.
var errLate = fmt.Errorf("%w after %s", context.DeadlineExceeded, dialTimeout)

// withCaller returns a context that also ends with the request that ctx was made for.
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
