package queue

import (
	"fmt"
	"math"
	"time"
)

// Request is one request that wants seats. Its caller sets the exported fields before Enter; the memory belongs to the
// Set until it has left.
type Request struct {
	// Class counts requests of the same kind.
	Class *Class
	// Seats are those that it takes while it runs, at least 1, and FinalSeats those that its work takes for the time of
	// Linger after it has been answered. It holds the larger number all the time.
	Seats, FinalSeats int
	Linger            time.Duration
	// Hash of its flow; queues are dealt by it.
	Hash uint64
	// Flow is what tells it from other flows of its class. It is only shown.
	Flow string
	// Info is what its caller knows about it. It is only shown.
	Info any

	// Ready has a message when a request that waited runs. It is set when Enter returns Wait, or Return or Yield
	// false.
	Ready chan struct{}
	// Arrived is when it entered, and Started when it ran; zero if it has not.
	Arrived, Started time.Time

	set           *Set
	queue         *fifo
	state         state
	total, final  Work
	arrivedR      Work
	since         time.Time // it runs, or ran before it paused
	pausedAt      time.Time
	away          time.Duration // of the time since then, without pausedAt
	returns       bool          // it has run before, and waits to go on
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

// each is how long the work takes on so many seats.
func (w Work) each(seats int) time.Duration {
	return time.Duration(float64(w) / float64(seats) * (float64(time.Second) / perSecond))
}

// Seconds returns the work in seat-seconds.
func (w Work) Seconds() float64 { return float64(w) / perSecond }

// String is how kube-apiserver shows work.
func (w Work) String() string { return fmt.Sprintf("%d.%08dss", w/perSecond, w%perSecond) }

// Class counts the requests of one flow schema in one Set. The Set changes it below its lock; see Set.Locked.
type Class struct {
	Waiting, WaitingSeats, Executing, Seats int

	Dispatched uint64
	// Rejected requests, by Verdict; under Wait are those whose time to wait was over.
	Rejected [4]uint64
	// NoRoom is how often one that was next found too few seats.
	NoRoom uint64
	// Observer is told of requests. May be nil.
	Observer Observer
}

// Observer notes what becomes of the requests of a Class. Its methods are called below the lock of the Set, so that
// what it notes needs none of its own; see Set.Locked.
type Observer interface {
	// Entered is told of a request that has asked for seats, what it was told, and how long the queue was with it; 0
	// if it has not been in one.
	Entered(q *Request, v Verdict, length int)
	// Left is told that a request which ran has ended.
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
	// waiting are its requests in the order in which they came, executing those that have left it and run or pause.
	waiting, executing list
	running            int // of executing, those that do not pause
	seats              int // in use by them, and by what lingers
	next               Work
	// of those that wait: their work, the most and the first seats that they want
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

// list is requests that are linked to each other. Each is in one list at most.
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
