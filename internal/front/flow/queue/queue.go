// Package queue distributes the seats of one priority level among requests: the queues of API Priority and Fairness.
//
// A Set has a number of seats. A request takes one or more of them while it runs. If none are free, it waits in a
// queue. The hash of its flow deals the flow a hand of queues, and the request joins the queue with the least work in
// that hand, so a demanding flow fills only its own hand (shuffle sharding). Fair queuing selects the next queue: R is
// the number of seat-seconds that each busy queue could have had since the start, and the next queue is the one with
// the request that would end first by that meter, at an assumed 3 ms a request. When a request ends, its queue is
// charged the actual time.
//
// The rules come from KEP-1040 and Kubernetes' package queueset; test/oracle/flow drives both with the same requests
// and compares their order. This package differs in its costs: a request is a few words in its caller's memory, linked
// into its queue while it waits or runs; sums are maintained, not recomputed; a request that need not wait needs no
// goroutine and no channel. A request may also lend its seats while it waits for something outside the server (Pause),
// and a long-running request alternates with waiting ones (Yield).
//
// A Set is safe for concurrent use. One lock guards all of its state; it is never held over I/O.
package queue

import (
	"fmt"
	"math"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/util/shufflesharding"
)

// Config configures the queues of a Set. The zero value rejects requests that find no free seat.
type Config struct {
	// Exempt runs every request at once, whatever the limit is.
	Exempt bool
	// Queues is the number of queues, 0 for none.
	Queues int
	// Length is the maximum number of requests waiting in each queue.
	Length int
	// Hand is the number of queues that a flow may use.
	Hand int
}

// assumed is the running time of a request until its actual time is known.
const assumed = 3 * time.Millisecond

// Options holds the dependencies of a Set.
type Options struct {
	Now func() time.Time // nil is time.Now
	// After calls a function later, in a new goroutine; nil is time.AfterFunc.
	After func(time.Duration, func())
	// Changed is called with the lock held after each change, with the new usage. May be nil.
	Changed func(now time.Time, u Usage)
}

// Usage is the current use of a Set.
type Usage struct {
	Waiting, WaitingSeats int // queued requests, and the seats that they need
	Executing             int // running requests, without paused ones
	Seats                 int // taken by running requests and by lingering work
	Paused                int
}

// Demand is how many seats the requests of now could use.
func (u Usage) Demand() int { return u.Seats + u.WaitingSeats }

// Set holds the queues of one priority level.
type Set struct {
	now     func() time.Time
	after   func(time.Duration, func())
	changed func(time.Time, Usage)

	mu     sync.Mutex
	config Config
	limit  int
	dealer *shufflesharding.Dealer // nil without queues
	queues []*fifo                 // more than config.Queues while surplus queues drain
	robin  int                     // index of the queue served last
	deals  int
	loose  list // running requests without a queue

	usage Usage
	// busy is the number of queues with requests. wanted is the sum of the seats that they use and that their waiting
	// requests need. R advances according to both.
	busy, wanted int
	r            Work
	synced       time.Time
	progress     Progress
}

// Progress is the state of the fair queuing, for metrics.
type Progress struct {
	R, DispatchR, Latest               Work
	Low, High, DiscountLow, DiscountUp Work
	Epochs                             int
}

// NewSet returns a Set without seats; Configure adds them.
func NewSet(o Options) *Set {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = func(d time.Duration, f func()) { time.AfterFunc(d, f) }
	}
	if o.Changed == nil {
		o.Changed = func(time.Time, Usage) {}
	}
	return &Set{now: o.Now, after: o.After, changed: o.Changed, synced: o.Now()}
}

// Check returns why c cannot be.
func (c Config) Check() error {
	if c.Exempt || c.Queues <= 0 {
		return nil
	}
	if _, err := shufflesharding.NewDealer(c.Queues, c.Hand); err != nil {
		return fmt.Errorf("%d queues with a hand size of %d: %w", c.Queues, c.Hand, err)
	}
	return nil
}

// Configure changes the number of seats and the queues. Waiting and running requests continue. Check must accept c.
func (s *Set) Configure(c Config, limit int) {
	now := s.lock()
	defer s.mu.Unlock()
	if c.Exempt || c.Queues <= 0 {
		c.Length, c.Hand, s.dealer = s.config.Length, s.config.Hand, nil
	} else {
		s.dealer, _ = shufflesharding.NewDealer(c.Queues, c.Hand)
		for len(s.queues) < c.Queues { // surplus queues are removed when they are empty
			s.queues = append(s.queues, &fifo{index: len(s.queues)})
		}
	}
	s.config, s.limit = c, limit
	s.dispatch(nil, now)
	s.changed(now, s.usage)
}

// Verdict is the decision about a request.
type Verdict int

// The verdicts.
const (
	// Run lets the request run at once.
	Run Verdict = iota
	// Wait queues the request: see Request.Ready.
	Wait
	// Full rejects the request, because its queue has the maximum length.
	Full
	// NoSeat rejects the request, because all seats are taken and there are no queues.
	NoSeat
)

// Enter requests seats. A running request must Leave; a waiting request must GiveUp, or Leave when it is Ready.
func (s *Set) Enter(q *Request) Verdict {
	now := s.lock()
	defer s.mu.Unlock()
	q.set, q.Arrived = s, now
	q.price()
	if s.dealer == nil {
		if !s.config.Exempt && !s.fits(q.seats()) {
			q.Class.Rejected[NoSeat]++
			return q.Class.entered(q, NoSeat, 0)
		}
		s.run(q, now)
		s.changed(now, s.usage)
		return q.Class.entered(q, Run, 0)
	}
	f := s.deal(q.Hash)
	if s.usage.Seats >= s.limit && f.waiting.len >= s.config.Length {
		f.bound()
		q.Class.Rejected[Full]++
		return q.Class.entered(q, Full, 0)
	}
	s.enqueue(f, q)
	f.bound()
	length := f.waiting.len
	s.dispatch(f, now)
	s.changed(now, s.usage)
	if q.state == running {
		return q.Class.entered(q, Run, length)
	}
	q.Ready = make(chan struct{}, 1) // one message: the request runs
	return q.Class.entered(q, Wait, length)
}

// GiveUp removes a request from its queue. It returns false if the request runs already.
func (s *Set) GiveUp(q *Request) bool {
	now := s.lock()
	defer s.mu.Unlock()
	if q.state != waiting {
		return false
	}
	f := q.queue
	s.unqueue(q)
	if !f.busy() {
		s.busy--
	}
	q.Class.Rejected[Wait]++
	f.bound()
	s.changed(now, s.usage)
	return true
}

// Leave ends a request that ran, and returns the time. Its seats are free at once, or at the end of its lingering work.
func (s *Set) Leave(q *Request) (now time.Time) {
	now = s.lock()
	defer s.mu.Unlock()
	if q.state == paused {
		s.resume(q, now)
	}
	s.finish(q, now)
	if q.Linger <= 0 {
		s.release(q)
	} else {
		s.after(q.Linger, func() {
			now := s.lock()
			defer s.mu.Unlock()
			s.release(q)
			s.dispatch(nil, now)
			s.changed(now, s.usage)
		})
	}
	s.dispatch(nil, now)
	s.changed(now, s.usage)
	if q.Class.Observer != nil {
		q.Class.Observer.Left(q, now)
	}
	return now
}

// Usage returns the current use.
func (s *Set) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

// Idle reports whether no request waits, runs or pauses.
func (s *Set) Idle() bool {
	u := s.Usage()
	return u.Waiting+u.Executing+u.Paused == 0
}

// Locked calls f with the lock held: neither the Set nor a Class of its requests changes meanwhile.
func (s *Set) Locked(f func(u Usage, p Progress)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.progress
	p.R = s.r
	f(s.usage, p)
}

// lock takes the lock and advances R: the queues have not changed since the lock was last held.
func (s *Set) lock() (now time.Time) {
	s.mu.Lock()
	now = s.now()
	s.r += work(s.rate(), now.Sub(s.synced))
	s.synced = now
	if s.r >= epoch {
		s.rewind()
	}
	return now
}

// rate is how many seats each busy queue could have now.
func (s *Set) rate() float64 {
	if s.busy == 0 {
		return 0
	}
	return math.Min(float64(s.wanted), float64(s.limit)) / float64(s.busy)
}

// epoch is when R begins anew, long before it does not fit.
const epoch = Work(math.MaxInt64 / 2)

// rewind subtracts the current R from all readings of R.
func (s *Set) rewind() {
	s.progress.Epochs++
	by := s.r
	s.r = 0
	for _, f := range s.queues {
		if !f.busy() {
			f.next = 0
			continue
		}
		f.next -= by
		for q := f.waiting.first; q != nil; q = q.after {
			q.arrivedR -= by
		}
	}
}
