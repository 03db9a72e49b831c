// Package queue shares the seats of one priority level among the requests that want them: the queues of API Priority
// and Fairness.
//
// A Set has so many seats. A request takes one or more of them as long as it runs. While there are none, it waits in
// one of the queues: the hash of its flow deals it a hand of queues, of which it takes the one with the least work, so
// that a flow that asks for much fills only its own hand (shuffle sharding). The queues take turns by fair queuing: R
// is how many seat-seconds each busy queue could have had since the start, and the queue whose next request would end
// first by that meter, at an assumed 3 ms a request, is next. When a request has ended, its queue is charged what it
// really took.
//
// The rules are those of KEP-1040 and of Kubernetes' package queueset; test/oracle/flow drives both with the same
// requests and compares what runs when. What is better here: a request is a few words in the memory of its caller and
// linked into its queue, whether it waits or runs; sums are kept, not counted anew; there is no goroutine and no
// channel for a request that need not wait; a request may give its seats away for a time (Pause), while it waits for
// something that needs nothing of the server; and one that runs for long takes turns with those that wait (Yield).
//
// A Set is safe for concurrent use. Everything that changes happens below its one lock, which is never held over I/O.
package queue

import (
	"fmt"
	"math"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/util/shufflesharding"
)

// Config is how a Set queues. The zero value rejects what finds no seat.
type Config struct {
	// Exempt has every request run at once, whatever the limit is.
	Exempt bool
	// Queues is how many queues there are, 0 for none.
	Queues int
	// Length is how many requests may wait in each.
	Length int
	// Hand is how many queues a flow may use.
	Hand int
}

// assumed is how long a request is taken to run until it is known.
const assumed = 3 * time.Millisecond

// Options is what a Set is made from.
type Options struct {
	Now func() time.Time // nil is time.Now
	// After calls a function later, in a goroutine of its own; nil is time.AfterFunc.
	After func(time.Duration, func())
	// Changed is called below the lock whenever something changes, with what is so from then on. May be nil.
	Changed func(now time.Time, u Usage)
}

// Usage is what a Set is doing.
type Usage struct {
	Waiting, WaitingSeats int // requests in the queues, and the seats that they want
	Executing             int // requests that run, without those that pause
	Seats                 int // that are taken, by those that run and by those that have ended and linger
	Paused                int
}

// Demand is how many seats the requests of now could use.
func (u Usage) Demand() int { return u.Seats + u.WaitingSeats }

// Set is the queues of one priority level.
type Set struct {
	now     func() time.Time
	after   func(time.Duration, func())
	changed func(time.Time, Usage)

	mu     sync.Mutex
	config Config
	limit  int
	dealer *shufflesharding.Dealer // nil without queues
	queues []*fifo                 // more than config.Queues while what is too many drains
	robin  int                     // index of the queue that was last served
	deals  int
	loose  list // requests that run and have no queue

	usage Usage
	// busy is how many queues have requests, and wanted is the seats in their use and those that their waiting requests
	// want: R goes by the two.
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

// NewSet returns a Set without seats; Configure gives it some.
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
		return fmt.Errorf("%d queues of which a flow may use %d: %w", c.Queues, c.Hand, err)
	}
	return nil
}

// Configure changes how many seats there are, and how requests wait for them. What waits or runs goes on. c is one that
// Check accepts.
func (s *Set) Configure(c Config, limit int) {
	now := s.lock()
	defer s.mu.Unlock()
	if c.Exempt || c.Queues <= 0 {
		c.Length, c.Hand, s.dealer = s.config.Length, s.config.Hand, nil
	} else {
		s.dealer, _ = shufflesharding.NewDealer(c.Queues, c.Hand)
		for len(s.queues) < c.Queues { // too many go when they are empty
			s.queues = append(s.queues, &fifo{index: len(s.queues)})
		}
	}
	s.config, s.limit = c, limit
	s.dispatch(nil, now)
	s.changed(now, s.usage)
}

// Verdict is what becomes of a request.
type Verdict int

// The verdicts.
const (
	// Run lets the request run at once.
	Run Verdict = iota
	// Wait has it wait: see Request.Ready.
	Wait
	// Full rejects it, because its queue is as long as it may be.
	Full
	// NoSeat rejects it, because all seats are taken and there are no queues.
	NoSeat
)

// Enter asks for the seats of a request. What runs must Leave; what waits must GiveUp, or Leave when it is Ready.
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
	q.Ready = make(chan struct{}, 1) // one message: that it runs
	return q.Class.entered(q, Wait, length)
}

// GiveUp takes a request out of its queue. It returns false if it runs meanwhile.
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

// Leave ends a request that ran, and returns when. Its seats are free at once, or when its work lingers no more.
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

// Usage returns what the Set is doing.
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

// Locked calls f while nothing of the Set changes, and no Class that its requests have.
func (s *Set) Locked(f func(u Usage, p Progress)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.progress
	p.R = s.r
	f(s.usage, p)
}

// lock takes the lock and brings R up to date: the queues have been as they are since it was last taken.
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

// rewind takes the same from all readings of R.
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
