// Package flow decides which requests run now, which wait, and which are turned away: API Priority and Fairness
// (KEP-1040).
//
// FlowSchemas say what a request belongs to, PriorityLevelConfigurations how many of the server's seats each kind of
// request has and how it waits for them. A request takes as many seats as it costs (estimate.go): a list or the
// initial events of a watch by the bytes that they touch, a write by the watches that will see it, everything else
// one. Package queue shares the seats of one level among the flows that want them; every 10 seconds Balance moves seats
// between levels to where they are wanted, within what each lends and borrows (borrow.go).
//
// The types are those of flowcontrol.apiserver.k8s.io/v1; where they come from, and who writes their status, is not
// known here. Behaviour, numbers, metrics and pages are Kubernetes'; test/oracle/flow compares them.
//
// A request reads the rules through an atomic pointer and takes two locks, that of its level when it comes and when it
// goes. Nothing runs, and no timer is set, for a level in which nothing waits. A Controller is safe for concurrent use.
// Its mutex is taken before that of a level's Set.
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

// Options is what a Controller is made from.
type Options struct {
	// Total is how many seats the server has.
	Total int
	// Patience is how long a request without a deadline may wait; others wait for a quarter of their time.
	Patience time.Duration
	// Weigh returns how many bytes of objects a list, or the beginning of a watch, touches; false if it is not known
	// here what the request names. Nil knows nothing.
	Weigh func(info *request.Info, query string) (bytes int64, known bool)
	// Narrow reports whether a watch waits for objects with one value of a field or label: others do not wake it, so it
	// is not counted among those that see a write. Nil is never.
	Narrow func(info *request.Info) bool
	// Unseen reports whether no watch sees what a write does. Nil is never.
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

	// rules are those of now; what reads them once is admitted by them.
	rules atomic.Pointer[rules]

	// mu guards the following.
	mu      sync.Mutex
	levels  map[string]*level
	nominal int     // sum of the levels' nominal seats
	fair    float64 // the fraction of what it aims at that each level got at the last balance
}

// New returns a Controller that knows the mandatory schemas and levels; Configure tells it others.
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

// steady returns a clock that does not follow when the machine's is set. It reads one clock where time.Now reads two,
// and each request asks twice.
func steady(from time.Time) func() time.Time {
	return func() time.Time { return from.Add(time.Since(from)) }
}

// maxPatience is the longest time for which a request waits.
const maxPatience = time.Minute

// Ticket is one request's place. Its memory belongs to the Controller until Done. The zero value is ready for Admit.
type Ticket struct {
	c      *Controller
	seat   queue.Request
	schema *schema
	who    user.Info
	info   *request.Info
	write  bool
	held   bool // it has seats
	// watchers is how many watches may see what it writes; less than 0 if that does not matter.
	watchers int
	// waited is how long it has waited for its seats.
	waited time.Duration
	// watched is under what it is counted as a watch, if counted.
	watched watchKey
	counted bool
}

// Admit finds out what a request belongs to and waits until it may run. False rejects it. In both cases Done must
// follow.
//
// ctx ends the wait; a request that has a deadline waits for a quarter of the time that it had when it arrived.
func (c *Controller) Admit(ctx context.Context, t *Ticket, r *http.Request, info *request.Info, who user.Info) bool {
	t.c, t.info, t.who, t.write = c, info, who, info.Mutating()
	t.schema = c.rules.Load().find(info, who)
	s := t.schema
	l := s.level
	t.seat.Class, t.seat.Info = &s.class.counts, t
	if l.queues > 1 {
		t.seat.Flow = s.distinguish(info, who)
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

// Lends reports whether a request has seats that others may want.
func (t *Ticket) Lends() bool { return t.held && !t.schema.level.exempt }

// Pause implements request.Seat. If too many have lent their seats, it keeps them.
func (t *Ticket) Pause() { t.seat.Pause() }

// Resume implements request.Seat.
func (t *Ticket) Resume() { t.seat.Resume() }

// Return implements request.Seat. The seats come back in the request's turn among those that wait, as if it came now,
// or when ctx ends.
func (t *Ticket) Return(ctx context.Context) {
	if !t.seat.Return() {
		t.await(ctx)
	}
}

// Yield lets others have their turn, if they wait and the request has run for long. It may be called while it runs.
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

// Release implements request.Seat. A watch gives its seats back when its initial events have been sent: what follows is
// charged to the writes that cause it.
func (t *Ticket) Release() {
	if t.held {
		t.c.leave(t)
	}
}

// Headers tells the client what its request belongs to: by uid, because names would say more than it may know.
func (t *Ticket) Headers(h http.Header) {
	h[SchemaHeader], h[LevelHeader] = t.schema.uid, t.schema.level.uid
}

// Names returns the names of what the request belongs to.
func (t *Ticket) Names() (schema, level string) { return t.schema.name, t.schema.level.name }

// RetryAfter is how many seconds the client of a rejected request is asked to wait.
func (t *Ticket) RetryAfter() int { return t.schema.level.retryAfter() }

// The headers in the form that http.Header has them in.
const (
	SchemaHeader = "X-Kubernetes-Pf-Flowschema-Uid"
	LevelHeader  = "X-Kubernetes-Pf-Prioritylevel-Uid"
)
