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
	// Of its configuration. Requests read queues, exempt and uid, so that a level which changes in these is a new value
	// with the same state.
	uid    []string
	exempt bool
	queues int
	*levelState
}

// levelState is what a level keeps when its configuration changes.
type levelState struct {
	set  *queue.Set
	most atomic.Int64 // seats of one request; 0 is as many as its kind may have

	// Controller.mu guards the following.
	shares                   int32
	lends, borrows           *int32 // percent
	waits                    int    // requests that may wait
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

// configure takes over what an object says.
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

// mostPercent of a level's nominal seats are the most for one request.
const mostPercent = 0.15

// divide finds the level's seats out: its part of the server's, and the bounds of borrowing.
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

// dropped remembers the requests that a level has turned away, to tell the next how long to stay away.
type dropped struct {
	after atomic.Int64 // seconds; at least 1

	mu      sync.Mutex
	second  int64 // that count is of
	count   int64
	history []droppedSecond // before it, the latest last
	raised  int64           // the second in which after was raised
}

type droppedSecond struct{ second, count int64 }

// maxRetryAfter is the longest time for which clients are sent away, in seconds.
const maxRetryAfter = 32

func (l *levelState) retryAfter() int { return int(l.dropped.after.Load()) }

// drop counts a request that is turned away. When a second is over, the time doubles if at least three requests for
// each of its seconds have been turned away meanwhile, and falls by one if fewer than one has.
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
