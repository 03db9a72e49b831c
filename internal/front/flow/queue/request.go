package queue

import (
	"fmt"
	"math"
	"time"
)

// Request is one request for seats. Its caller sets the exported fields before Enter; the memory belongs to the Set
// until Leave.
type Request struct {
	// Class counts requests of the same schema.
	Class *Class
	// Seats is the number of seats while the request runs, at least 1. FinalSeats is the number for the time Linger
	// after its response. The request holds the larger number all the time.
	Seats, FinalSeats int
	Linger            time.Duration
	// Hash is the hash of the flow, which deals its queues.
	Hash uint64
	// Flow names the flow within its class, for display only.
	Flow string
	// Info is the caller's description, for display only.
	Info any

	// Ready receives a message when a waiting request runs. It is set when Enter returns Wait, or Return or Yield
	// returns false.
	Ready chan struct{}
	// Arrived is the time of Enter, and Started the start; zero if it has not run.
	Arrived, Started time.Time

	set           *Set
	queue         *fifo
	state         state
	total, final  Work
	arrivedR      Work
	since         time.Time // start of the run, or of the run before the pause
	pausedAt      time.Time
	away          time.Duration // time paused since then, without pausedAt
	returns       bool          // it ran before, and waits to continue
	before, after *Request
}

type state int

const (
	gone state = iota
	waiting
	running
	paused
)

// Held reports whether the request has seats, or has lent them.
func (q *Request) Held() bool { return q.set != nil }

// Leave is Set.Leave.
func (q *Request) Leave() { q.set.Leave(q) }

// Pause is Set.Pause.
func (q *Request) Pause() bool { return q.set.Pause(q) }

// Resume is Set.Resume.
func (q *Request) Resume() { q.set.Resume(q) }

// Return is Set.Return.
func (q *Request) Return() bool { return q.set.Return(q) }

// Yield is Set.Yield.
func (q *Request) Yield() bool { return q.set.Yield(q) }

func (q *Request) seats() int { return max(q.Seats, q.FinalSeats) }

// price finds out how much work the request is taken for.
func (q *Request) price() {
	q.final = work(float64(q.FinalSeats), q.Linger)
	q.total = work(float64(q.Seats), assumed) + q.final
}

// Work is seat-seconds, in units of 10 ns on one seat.
type Work int64

const perSecond = 1e8

func work(seats float64, d time.Duration) Work {
	return Work(math.Round(seats * float64(d) / (1e9 / perSecond)))
}

// each returns the duration of the work on so many seats.
func (w Work) each(seats int) time.Duration {
	return time.Duration(float64(w) / float64(seats) * (float64(time.Second) / perSecond))
}

// Seconds returns the work in seat-seconds.
func (w Work) Seconds() float64 { return float64(w) / perSecond }

// String is how kube-apiserver shows work.
func (w Work) String() string { return fmt.Sprintf("%d.%08dss", w/perSecond, w%perSecond) }

// Class counts the requests of one flow schema in one Set. The Set changes it with the lock held; see Set.Locked.
type Class struct {
	Waiting, WaitingSeats, Executing, Seats int

	Dispatched uint64
	// Rejected counts rejected requests by Verdict; Wait counts timeouts of waiting requests.
	Rejected [4]uint64
	// NoRoom counts how often the next request found too few seats.
	NoRoom uint64
	// Observer observes requests. May be nil.
	Observer Observer
}

// Observer records the events of a Class's requests. Its methods run with the lock of the Set held, so its state needs
// no other lock; see Set.Locked.
type Observer interface {
	// Entered is called after Enter with the verdict and the length of the queue including the request; 0 without a
	// queue.
	Entered(q *Request, v Verdict, length int)
	// Left is called when a running request ends.
	Left(q *Request, now time.Time)
}

func (c *Class) entered(q *Request, v Verdict, length int) Verdict {
	if c.Observer != nil {
		c.Observer.Entered(q, v, length)
	}
	return v
}

// fifo is one queue.
type fifo struct {
	index   int
	removed bool
	// waiting holds the queued requests in order of arrival, executing those that run or pause.
	waiting, executing list
	running            int // number in executing, without paused ones
	seats              int // in use by them, and by lingering work
	next               Work
	// of waiting requests: their work, and their maximum and initial seats
	work           Work
	wants, initial int
}

func (f *fifo) busy() bool { return f.waiting.len > 0 || f.running > 0 }

// bound keeps a queue from saving up: its next request is not served, by the meter, before it came.
func (f *fifo) bound() {
	if q := f.waiting.first; q != nil && f.next < q.arrivedR {
		f.next = q.arrivedR
	}
}

// list is a linked list of requests. A request is in at most one list.
type list struct {
	first, last *Request
	len         int
}

func (l *list) push(q *Request) {
	q.before, q.after = l.last, nil
	if l.last == nil {
		l.first = q
	} else {
		l.last.after = q
	}
	l.last = q
	l.len++
}

func (l *list) unshift(q *Request) {
	q.before, q.after = nil, l.first
	if l.first == nil {
		l.last = q
	} else {
		l.first.before = q
	}
	l.first = q
	l.len++
}

func (l *list) remove(q *Request) {
	if q.before == nil {
		l.first = q.after
	} else {
		q.before.after = q.after
	}
	if q.after == nil {
		l.last = q.before
	} else {
		q.after.before = q.before
	}
	q.before, q.after = nil, nil
	l.len--
}
