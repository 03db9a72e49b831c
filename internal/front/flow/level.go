package flow

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/bowsprit/bowsprit/internal/front/flow/queue"
)

// level is a priority level: so many seats, and the queues for them.
type level struct {
	name string
	// Fields from the configuration. Requests read queues, exempt and uid, so a change of these creates a new level
	// with the same state.
	uid    []string
	exempt bool
	queues int
	*levelState
}

// levelState is the state of a level that survives changes of its configuration.
type levelState struct {
	set  *queue.Set
	most atomic.Int64 // maximum of seats for one request; 0 means the maximum of its kind

	// Controller.mu guards the following.
	shares                   int32
	lends, borrows           *int32 // percent
	waits                    int    // maximum of waiting requests
	nominal, lowest, highest int
	current                  int
	quiescing                bool
	stats                    demandStats
	target                   float64
	classes                  map[string]*class
	config                   queue.Config

	// The lock of set guards the following.
	demand                              integral
	seatUse, waitUse, runUse, demandUse ratio

	dropped dropped
}

// newLevel returns a level without seats.
func (c *Controller) newLevel() *levelState {
	now := c.now()
	l := &levelState{classes: map[string]*class{}, demand: integral{at: now}}
	l.dropped.after.Store(1)
	l.seatUse, l.demandUse = newRatio(seatBounds, now), newRatio(demandBounds, now)
	l.waitUse, l.runUse = newRatio(requestBounds, now), newRatio(requestBounds, now)
	l.set = queue.NewSet(queue.Options{Now: c.now, Changed: func(now time.Time, u queue.Usage) {
		l.demand.set(now, float64(u.Demand()))
		l.demandUse.set(now, float64(u.Demand()))
		l.seatUse.set(now, float64(u.Seats))
		l.waitUse.set(now, float64(u.Waiting))
		l.runUse.set(now, float64(u.Executing))
	}})
	return l
}

// errBroken is about a configuration that validation refuses.
var errBroken = errors.New("its type, its name and the parts of its spec do not fit together")

// queueConfig returns how a level queues.
func queueConfig(p *flowcontrolv1.PriorityLevelConfiguration) (queue.Config, error) {
	spec := &p.Spec
	exempt := spec.Type == flowcontrolv1.PriorityLevelEnablementExempt
	limited := spec.Type == flowcontrolv1.PriorityLevelEnablementLimited
	if limited != (spec.Limited != nil) || exempt != (spec.Exempt != nil) ||
		exempt != (p.Name == flowcontrolv1.PriorityLevelConfigurationNameExempt) {
		return queue.Config{}, errBroken
	}
	if spec.Limited == nil {
		return queue.Config{Exempt: true}, nil
	}
	response := &spec.Limited.LimitResponse
	if (response.Type == flowcontrolv1.LimitResponseTypeReject) != (response.Queuing == nil) {
		return queue.Config{}, errBroken
	}
	if response.Queuing == nil {
		return queue.Config{}, nil
	}
	c := queue.Config{
		Queues: int(response.Queuing.Queues), Length: int(response.Queuing.QueueLengthLimit),
		Hand: int(response.Queuing.HandSize),
	}
	return c, c.Check()
}

// configure takes over the fields of an object.
func (l *level) configure(p *flowcontrolv1.PriorityLevelConfiguration, c queue.Config) {
	l.name, l.uid, l.exempt, l.queues, l.config = p.Name, []string{string(p.UID)}, c.Exempt, c.Queues, c
	l.quiescing = false
	l.shares, l.lends, l.borrows, l.waits = 0, nil, nil, 0
	if limited := p.Spec.Limited; limited != nil {
		if limited.NominalConcurrencyShares != nil {
			l.shares = *limited.NominalConcurrencyShares
		}
		l.lends, l.borrows = limited.LendablePercent, limited.BorrowingLimitPercent
		if c.Queues > 0 {
			l.waits = c.Queues * c.Length
		}
	} else if exempt := p.Spec.Exempt; exempt != nil {
		if exempt.NominalConcurrencyShares != nil {
			l.shares = *exempt.NominalConcurrencyShares
		}
		l.lends = exempt.LendablePercent
	}
}

// mostPercent is the share of a level's nominal seats that one request may take.
const mostPercent = 0.15

// divide computes the level's seats: its share of the server's, and the bounds of borrowing.
func (l *levelState) divide(total int, shares float64) {
	fresh := l.nominal == 0 && l.highest == 0
	l.nominal = 0
	if shares > 0 {
		l.nominal = int(math.Ceil(float64(total) * float64(l.shares) / shares))
	}
	lends, borrows := 0, total
	if l.lends != nil {
		lends = int(math.Round(float64(l.nominal) * float64(*l.lends) / 100))
	}
	if l.borrows != nil {
		borrows = int(math.Round(float64(l.nominal) * float64(*l.borrows) / 100))
	}
	l.lowest, l.highest = l.nominal-lends, l.nominal+borrows
	if l.config.Queues > 0 {
		of := float64(l.nominal)
		l.most.Store(int64(max(1, min(math.Ceil(of*mostPercent), float64(l.nominal/l.config.Hand)))))
	}
	if fresh {
		l.current = l.nominal - lends/2
	}
}

// dropped tracks rejected requests, to compute the Retry-After of the next.
type dropped struct {
	after atomic.Int64 // seconds; at least 1

	mu      sync.Mutex
	second  int64 // the second that count belongs to
	count   int64
	history []droppedSecond // earlier seconds, the latest last
	raised  int64           // the second in which after was last raised
}

type droppedSecond struct{ second, count int64 }

// maxRetryAfter is the maximum Retry-After, in seconds.
const maxRetryAfter = 32

func (l *levelState) retryAfter() int { return int(l.dropped.after.Load()) }

// drop counts a rejected request. At the end of each second it checks the last after seconds: after doubles if at least
// three requests a second were rejected, and falls by one if fewer than one a second was.
func (l *levelState) drop(second int64) {
	d := &l.dropped
	d.mu.Lock()
	defer d.mu.Unlock()
	if second == d.second {
		d.count++
		return
	}
	after := d.after.Load()
	d.history = append(d.history, droppedSecond{d.second, d.count})
	for len(d.history) > 0 && second-d.history[0].second > min(2*after, maxRetryAfter) {
		d.history = d.history[1:]
	}
	d.second, d.count = second, 1
	sum := int64(0)
	for _, h := range d.history {
		if h.second < second && second-h.second <= after {
			sum += h.count
		}
	}
	switch {
	case second-d.raised >= after && sum >= 3*after:
		d.after.Store(min(2*after, maxRetryAfter))
		d.raised = second
	case sum < after && after > 1:
		d.after.Store(after - 1)
	}
}
