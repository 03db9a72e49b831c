package chain

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/front/audit"
)

// audit records the request if the policy selects it: its arrival, facts from later steps and handlers, and its end.
// The user is the authenticated one, not the impersonated one.
func (c *Chain) audit(x *exchange, next func(*exchange)) {
	record := c.recordOf(x)
	if record == nil {
		next(x)
		return
	}
	if !record.RequestReceived() {
		c.config.Audit.Rejected()
		c.fail(x, apierrors.NewInternalError(errors.New("failed to store audit event")))
		return
	}
	x.record, x.scope.Audit = record, record
	defer func() {
		if cause := recover(); cause != nil {
			x.record = nil
			record.Panicked(cause)
			panic(cause)
		}
		x.end(c.audited)
	}()
	next(x)
}

// audited records the end of the request, if it is recorded.
func (c *Chain) audited(x *exchange) {
	record := x.record
	if record == nil {
		return
	}
	x.record = nil
	x.took = c.since(x.started)
	annotateLatency(record, x, x.took)
	record.ResponseComplete(x.started.Add(x.took))
}

// recordOf starts the audit record of the request, or returns nil if it is not recorded.
func (c *Chain) recordOf(x *exchange) *audit.Record {
	if c.config.Audit == nil {
		return nil
	}
	record := c.config.Audit.Begin(audit.Received{
		HTTP: x.r, Info: x.info, User: x.user, ID: x.scope.AuditID, At: x.started, LongRunning: x.longRunning,
		Flushed: x.r.ProtoMajor == 2, // conn.Config.Sending
		Memory:  x.memory.record,
	})
	if record != nil {
		x.memory.record = record
	}
	return record
}

// refuse is fail for a request with an unknown user. The record consists of this response only.
func (c *Chain) refuse(x *exchange, err error) {
	if x.record = c.recordOf(x); x.record != nil {
		x.record.AnswerOnly()
	}
	c.fail(x, err)
	x.record = nil
}

// annotated is the duration from which the event of a request gets latency annotations.
const annotated = 500 * time.Millisecond

// annotateLatency records the time spent in each phase of a slow request.
func annotateLatency(r *audit.Record, x *exchange, total time.Duration) {
	const prefix = "apiserver.latency.k8s.io/"
	if total <= annotated || x.info.LongRunning() {
		return
	}
	x.scope.Latency.Each(func(name string, took time.Duration) { r.Annotate(prefix+name, took.String()) })
	r.Annotate(prefix+"total", total.String())
}
