package chain

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/front/flow"
	"github.com/bowsprit/bowsprit/internal/request"
)

// shared is what a request has that shares the server with others.
type shared struct {
	ticket flow.Ticket
	turn   *turn // nil before the first large piece of its answer
}

// share has a request take seats of its priority level as long as it runs, and wait for them if there are none. Watches
// take them until they have sent what was there; other long-running requests take none.
func (c *Chain) share(x *exchange, next func(*exchange)) {
	if x.longRunning && x.info.Verb != "watch" {
		next(x)
		return
	}
	x.shared = &x.place
	f, t := c.config.Flow, &x.shared.ticket
	admitted := f.Admit(x.r.Context(), t, x.r, x.info, x.who)
	c.took(x, request.Queue, t.Waited())
	defer f.Done(t)
	t.Headers(x.w.Header())
	if !admitted {
		c.fail(x, apierrors.NewTooManyRequests("Too many requests, please try again later.", t.RetryAfter()))
		return
	}
	x.scope.Waits.Seat = t
	next(x)
	if x.shared.turn == nil {
		c.turns.ended()
	}
}

// keeps reports whether a header that was set before the handler stays when its answer is taken back.
func (x *exchange) keeps(header string) bool {
	switch header {
	case "Audit-Id", "Cache-Control", "Connection":
		return true
	case flow.SchemaHeader, flow.LevelHeader:
		return x.shared != nil
	}
	return false
}

// takeTurn has a request whose answer is long wait for its turn before each large piece: for seats, if others wait for
// them, then among the large pieces. end is called when it has been written.
func (x *exchange) takeTurn() (end func()) {
	ctx, s := x.r.Context(), x.shared
	s.ticket.Yield(ctx)
	if s.turn == nil {
		s.turn = &turn{of: x.chain.turns}
	}
	if !s.turn.take(ctx) {
		return func() {}
	}
	return s.turn.end
}
