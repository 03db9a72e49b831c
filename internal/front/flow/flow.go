// Package flow implements API Priority and Fairness (KEP-1040): it decides which requests run now, wait, or are
// rejected.
//
// A FlowSchema assigns a request to a PriorityLevelConfiguration, which defines the level's share of the server's seats
// and its queues. A request takes as many seats as it costs (estimate.go): a list or the initial events of a watch by
// the bytes that they read, a write by the watches that will see it, any other request one. Package queue distributes
// the seats of one level among its flows. Every 10 seconds Balance moves seats between levels according to demand,
// within the limits for lending and borrowing (borrow.go).
//
// The types come from flowcontrol.apiserver.k8s.io/v1; callers provide the objects and write their status. Behaviour,
// numbers, metrics and pages match Kubernetes; test/oracle/flow compares them.
//
// A request reads the rules through an atomic pointer and takes the lock of its level twice: at its start and at its
// end. An idle level has no goroutine and no timer. A Controller is safe for concurrent use. Its mutex is taken before
// the lock of a level's Set.
package flow

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/front/flow/queue"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Options configures a Controller.
type Options struct {
	// Total is the number of seats of the server.
	Total int
	// Patience is how long a request without a deadline may wait; others wait for a quarter of their time.
	Patience time.Duration
	// Weigh returns the number of bytes of objects that a list, or the start of a watch, reads; false if the resource
	// is unknown. Nil always means false.
	Weigh func(info *request.Info, query string) (bytes int64, known bool)
	// Narrow reports whether a watch waits for objects with one value of a field or label. Other objects do not wake
	// it, so it does not count among the watches that see a write. Nil always means false.
	Narrow func(info *request.Info) bool
	// Unseen reports whether a write causes no watch event. Nil always means false.
	Unseen func(info *request.Info) bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Controller admits requests.
type Controller struct {
	total    int
	patience time.Duration
	weigh    func(*request.Info, string) (int64, bool)
	narrow   func(*request.Info) bool
	unseen   func(*request.Info) bool
	now      func() time.Time
	watches  watches
	kinds    [2]*kindUse // reads and writes

	// rules are the current rules; a request that loads them once uses them to the end.
	rules atomic.Pointer[rules]

	// mu guards the following.
	mu      sync.Mutex
	levels  map[string]*level
	nominal int     // sum of the levels' nominal seats
	fair    float64 // fraction of its target that each level got at the last balance
}

// New returns a Controller with the mandatory schemas and levels; Configure adds others.
func New(o Options) *Controller {
	c := &Controller{
		total: o.Total, patience: o.Patience, weigh: o.Weigh, narrow: o.Narrow, unseen: o.Unseen, now: o.Now,
		levels: map[string]*level{}, watches: watches{count: map[watchKey]int{}},
	}
	never := func(*request.Info) bool { return false }
	if c.narrow == nil {
		c.narrow = never
	}
	if c.unseen == nil {
		c.unseen = never
	}
	if c.weigh == nil {
		c.weigh = func(*request.Info, string) (int64, bool) { return 0, false }
	}
	if c.now == nil {
		c.now = steady(time.Now())
	}
	if c.patience <= 0 {
		c.patience = maxPatience
	}
	for i := range c.kinds {
		c.kinds[i] = newKindUse(c.now())
	}
	c.Configure(nil, nil)
	return c
}

// steady returns a clock that ignores changes of the machine's time. It reads one clock, where time.Now reads two, and
// each request reads it twice.
func steady(from time.Time) func() time.Time {
	return func() time.Time { return from.Add(time.Since(from)) }
}

// maxPatience is the longest time that a request waits.
const maxPatience = time.Minute

// Ticket is one request's use of seats. Its memory belongs to the Controller until Done. The zero value is ready for
// Admit.
type Ticket struct {
	c      *Controller
	seat   queue.Request
	schema *schema
	user   user.Info
	info   *request.Info
	write  bool
	held   bool // it has seats
	// watchers is the number of watches that may see the write; negative if it has no effect.
	watchers int
	// waited is the time that the request has waited for its seats.
	waited time.Duration
	// watched is the key under which the request counts as a watch, if counted.
	watched watchKey
	counted bool
}

// Admit classifies a request and waits until it may run. It returns false to reject the request. Call Done in both
// cases.
//
// ctx ends the wait; a request with a deadline waits for at most a quarter of its time on arrival.
func (c *Controller) Admit(ctx context.Context, t *Ticket, r *http.Request, info *request.Info, u user.Info) bool {
	t.c, t.info, t.user, t.write = c, info, u, info.Mutating()
	t.schema = c.rules.Load().find(info, u)
	s := t.schema
	l := s.level
	t.seat.Class, t.seat.Info = &s.class.counts, t
	if l.queues > 1 {
		t.seat.Flow = s.distinguish(info, u)
		t.seat.Hash = s.hashes.of(s.name, t.seat.Flow)
	}
	c.estimate(t, r)
	verdict := l.set.Enter(&t.seat)
	if verdict == queue.Wait {
		verdict = c.wait(ctx, t)
	}
	if verdict != queue.Run {
		l.drop(t.seat.Arrived.Add(t.waited).Unix())
		return false
	}
	t.held = true
	c.kinds[kind(t.write)].add(t.Began(), executing, 1)
	if info.Verb == watchVerb && !c.narrow(info) {
		t.watched, t.counted = c.watches.add(info), true
	}
	return true
}

// wait blocks until a request runs, or may wait no longer.
func (c *Controller) wait(ctx context.Context, t *Ticket) queue.Verdict {
	kind := c.kinds[kind(t.write)]
	kind.add(t.seat.Arrived, waiting, 1)
	patience := c.patience
	if deadline, ok := ctx.Deadline(); ok {
		patience = deadline.Sub(t.seat.Arrived) / 4
	}
	timer := time.NewTimer(min(patience, maxPatience))
	defer timer.Stop()
	verdict := queue.Run
	select {
	case <-t.seat.Ready:
	case <-ctx.Done():
		verdict = queue.Wait
	case <-timer.C:
		verdict = queue.Wait
	}
	if verdict == queue.Wait && !t.schema.level.set.GiveUp(&t.seat) {
		verdict = queue.Run
	}
	now := c.now()
	t.waited = now.Sub(t.seat.Arrived)
	kind.add(now, waiting, -1)
	t.schema.level.set.Locked(func(queue.Usage, queue.Progress) {
		t.schema.class.waited(verdict == queue.Run, t.waited)
	})
	return verdict
}

// Done ends a request.
func (c *Controller) Done(t *Ticket) {
	if t.held {
		c.leave(t)
	}
	if t.counted {
		t.counted = false
		c.watches.forget(t.watched)
	}
}

func (c *Controller) leave(t *Ticket) {
	t.held = false
	c.kinds[kind(t.write)].add(t.schema.level.set.Leave(&t.seat), executing, -1)
}

// Waited returns how long a request has waited for its seats, or until it was turned away.
func (t *Ticket) Waited() time.Duration { return t.waited }

// Began returns when a request got its seats.
func (t *Ticket) Began() time.Time { return t.seat.Arrived.Add(t.waited) }

// Lends reports whether a request holds seats that others may need.
func (t *Ticket) Lends() bool { return t.held && !t.schema.level.exempt }

// Pause implements request.Seat. If too many requests have lent their seats, it keeps them.
func (t *Ticket) Pause() { t.seat.Pause() }

// Resume implements request.Seat.
func (t *Ticket) Resume() { t.seat.Resume() }

// Return implements request.Seat. The request queues for its seats like a new one; if ctx ends first, it takes them at
// once.
func (t *Ticket) Return(ctx context.Context) {
	if !t.seat.Return() {
		t.await(ctx)
	}
}

// Yield implements request.Seat. It gives waiting requests a turn if the request has run for long. It may be called
// while the request runs.
func (t *Ticket) Yield(ctx context.Context) {
	if t.Lends() && !t.seat.Yield() {
		t.await(ctx)
	}
}

func (t *Ticket) await(ctx context.Context) {
	select {
	case <-t.seat.Ready:
	case <-ctx.Done():
		t.seat.Resume()
	}
}

// Release implements request.Seat. A watch releases its seats after its initial events: later events are charged to the
// writes that cause them.
func (t *Ticket) Release() {
	if t.held {
		t.c.leave(t)
	}
}

// Headers sets the response headers with the uids of the schema and the level: the client may not be allowed to know
// their names.
func (t *Ticket) Headers(h http.Header) {
	h[SchemaHeader], h[LevelHeader] = t.schema.uid, t.schema.level.uid
}

// Names returns the names of the request's schema and level.
func (t *Ticket) Names() (schema, level string) { return t.schema.name, t.schema.level.name }

// RetryAfter returns the number of seconds after which the client of a rejected request should retry.
func (t *Ticket) RetryAfter() int { return t.schema.level.retryAfter() }

// The response headers, in the canonical form of http.Header.
const (
	SchemaHeader = "X-Kubernetes-Pf-Flowschema-Uid"
	LevelHeader  = "X-Kubernetes-Pf-Prioritylevel-Uid"
)
