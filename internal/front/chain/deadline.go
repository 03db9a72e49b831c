package chain

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/front/audit"
	"github.com/bowsprit/bowsprit/internal/request"
)

// deadline gives the request its context, with the Scope and the time limit. The limit is the query's timeout, at most
// RequestTimeout; long-running requests have none and end with the server. A late request gets a 504. If its response
// has begun, the connection breaks off, so that the client cannot mistake a partial response for a complete one.
func (c *Chain) deadline(x *exchange, next func(*exchange)) {
	if x.longRunning {
		ctx, cancel := context.WithCancel(x.r.Context())
		stop := context.AfterFunc(c.closing, cancel)
		x.release = func() { stop(); cancel() }
		defer x.end((*exchange).unlimited)
		x.r = x.r.WithContext(request.NewContext(c.recorded(ctx), &x.scope))
		x.body.Watch(x.r)
		next(x)
		return
	}
	timeout, err := c.timeout(x.r)
	if err != nil {
		c.refuse(x, err)
		return
	}
	x.memory.timed.Begin(c.recorded(x.r.Context()), &x.scope, x.started.Add(timeout))
	defer x.memory.timed.End()
	defer x.finish()
	x.ctx = &x.memory.timed
	x.memory.own = *x.r.WithContext(x.ctx)
	x.r = &x.memory.own
	x.body.Watch(x.r)
	if x.r.ContentLength != 0 { // HTTP/2 requests always have a body reader
		x.stopRead = context.AfterFunc(x.ctx, x.endRead)
	}
	next(x)
	x.finish()
	switch expired := x.memory.timed.End(); {
	case !x.late && !expired:
	case x.conn != nil:
	case x.code >= http.StatusBadRequest && !x.late: // a Status just in time, written in one piece
	case x.code != 0:
		panic(http.ErrAbortHandler)
	default:
		x.reset()
		tooLate(x)
	}
}

// unlimited ends a long-running request.
func (x *exchange) unlimited() {
	x.finish()
	x.release()
}

// recorded adds the values to a request's context that Kubernetes' libraries need to annotate audit events, if auditing
// is enabled.
func (c *Chain) recorded(ctx context.Context) context.Context {
	if c.config.Audit == nil {
		return ctx
	}
	return audit.Context(ctx)
}

// tooLate responds like kube-apiserver with a Status that lacks its kind. Clients then show their own text for a 504,
// which adds that the request may still be running.
func tooLate(x *exchange) {
	status := apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0).Status()
	x.Header().Set("Content-Type", "text/plain; charset=utf-8")
	x.WriteHeader(http.StatusGatewayTimeout)
	_ = json.NewEncoder(x).Encode(&status) // on error the client has disconnected
}

// timeout returns the time limit of a request.
func (c *Chain) timeout(r *http.Request) (time.Duration, error) {
	longest := c.config.RequestTimeout
	// Most requests have no such parameter, and taking a query apart costs more than looking for it.
	if query := r.URL.RawQuery; !strings.Contains(query, "timeout=") && !strings.Contains(query, "%") {
		return longest, nil
	}
	value := r.URL.Query().Get("timeout")
	if value == "" {
		return longest, nil
	}
	timeout, err := time.ParseDuration(value)
	if err != nil {
		return 0, apierrors.NewBadRequest("invalid timeout specified in the request URL - " + err.Error())
	}
	if timeout <= 0 || timeout > longest {
		return longest, nil
	}
	return timeout, nil
}
