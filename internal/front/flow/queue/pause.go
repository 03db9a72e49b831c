package queue

import "time"

// pauseFactor times the limit is how many requests may have given their seats away: each holds memory.
const pauseFactor = 8

// Pause lends the seats of a running request until Resume. If too many requests are paused, it returns false and
// changes nothing.
func (s *Set) Pause(q *Request) bool {
	now := s.lock()
	defer s.mu.Unlock()
	if q.state != running || s.usage.Paused >= pauseFactor*max(s.limit, 1) {
		return false
	}
	q.state = paused
	s.usage.Paused++
	s.halt(q, now)
	s.dispatch(nil, now)
	s.changed(now, s.usage)
	return true
}

// halt takes the seats of a running request away.
func (s *Set) halt(q *Request, now time.Time) {
	q.pausedAt = now
	s.usage.Executing--
	q.Class.Executing--
	s.take(q, -q.seats())
	if f := q.queue; f != nil {
		if f.running--; !f.busy() {
			s.busy--
		}
	}
}

// Resume takes the seats back after Pause, or while Return waits for them. It does not wait: more seats than the limit
// may be in use until others end.
func (s *Set) Resume(q *Request) {
	now := s.lock()
	defer s.mu.Unlock()
	switch {
	case q.state == waiting && q.returns:
		s.unqueue(q)
		s.run(q, now)
	case q.state == paused:
		s.resume(q, now)
	default:
		return
	}
	s.changed(now, s.usage)
}

// Return takes the seats back after Pause, in the request's turn. It returns false if others come first. The request is
// then the first in its queue, and gets a message in Ready when it runs; a caller that stops waiting calls Resume.
// Without turns one flow could lend its seats without bound.
func (s *Set) Return(q *Request) bool {
	now := s.lock()
	defer s.mu.Unlock()
	if q.state != paused {
		return true
	}
	f := q.queue
	if s.dealer == nil || f == nil || f.removed || s.usage.Waiting == 0 && s.fits(q.seats()) {
		s.resume(q, now)
		s.changed(now, s.usage)
		return true
	}
	s.usage.Paused--
	s.requeue(q, now)
	return false
}

// Yield makes a request that has run for longer than the assumed time give up its seats and queue again, if others
// wait. So a flow is charged for its use while its requests run, and not only at their end. It returns false if the
// request waits, as Return does.
func (s *Set) Yield(q *Request) bool {
	now := s.lock()
	defer s.mu.Unlock()
	f := q.queue
	if q.state != running || s.usage.Waiting == 0 || s.dealer == nil || f == nil || f.removed ||
		now.Sub(q.since)-q.away <= assumed {
		return true
	}
	s.halt(q, now)
	s.requeue(q, now)
	return false
}

// requeue puts a halted request before the others of its queue. Its price is that of a new request; its queue is
// charged for the time so far.
func (s *Set) requeue(q *Request, now time.Time) {
	f := q.queue
	f.next -= work(float64(q.Seats), assumed-(q.pausedAt.Sub(q.since)-q.away))
	f.executing.remove(q)
	q.returns, q.away, q.total = true, 0, work(float64(q.Seats), assumed)
	s.enqueue(f, q)
	f.bound()
	q.Ready = make(chan struct{}, 1) // one message: the request runs
	s.dispatch(nil, now)
	s.changed(now, s.usage)
}

func (s *Set) resume(q *Request, now time.Time) {
	q.state, q.away = running, q.away+now.Sub(q.pausedAt)
	s.usage.Paused--
	s.usage.Executing++
	q.Class.Executing++
	s.take(q, q.seats())
	if f := q.queue; f != nil {
		if !f.busy() {
			s.busy++
			f.next = max(f.next, s.r)
		}
		f.running++
	}
}
