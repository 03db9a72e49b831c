package chain

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/front/flow"
	"github.com/bowsprit/bowsprit/internal/request"
)

// shared is a request's use of the server's seats.
type shared struct {
	ticket flow.Ticket
	turn   *turn // nil before the first large piece of the response
}

// share makes a request occupy seats of its priority level while it runs, after waiting for them if necessary. A watch
// occupies seats until it has sent the initial state; other long-running requests occupy none.
func (c *Chain) share(x *exchange, next func(*exchange)) {
	if x.longRunning && x.info.Verb != "watch" {
		next(x)
		return
	}
	x.shared = &x.memory.shared
	f, t := c.config.Flow, &x.shared.ticket
	admitted := f.Admit(x.r.Context(), t, x.r, x.info, x.user)
	c.took(x, request.Queue, t.Waited())
	defer x.end(c.unshare)
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

// unshare gives the seats back.
func (c *Chain) unshare(x *exchange) {
	if x.shared != nil {
		c.config.Flow.Done(&x.shared.ticket)
	}
}

// keeps reports whether a header set before the handler survives reset.
func (x *exchange) keeps(header string) bool {
	switch header {
	case "Audit-Id", "Cache-Control", "Connection":
		return true
	case flow.SchemaHeader, flow.LevelHeader:
		return x.shared != nil
	}
	return false
}

// takeTurn makes a request with a long response wait before each large piece: first for seats, if other requests wait
// for them, then for a turn among the large pieces. Call end when the piece has been written.
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
