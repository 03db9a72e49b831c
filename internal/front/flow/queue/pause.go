package queue

import "time"

// pauseFactor times the limit is how many requests may have given their seats away: each holds memory.
const pauseFactor = 8

// Pause gives away the seats of a request that runs, until Resume. It returns false, and changes nothing, if too many
// have done so.
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

// halt takes the seats of a request that runs.
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

// Resume takes the seats back that Pause gave away, or that Return waits for. It waits for nothing: there may be more
// in use than there are, until others have ended.
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

// Return takes the seats back that Pause gave away in the request's turn: it returns false if others come first. Then
// the request is the first in its queue, and has a message in Ready when it runs; or its caller waits no longer, and
// calls Resume. Those that have lent their seats would be without bounds otherwise, all of one flow.
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

// Yield has a request that has run for longer than requests are taken to run give its seats away and wait for its turn
// among those that wait, if there are any: what is shared by what requests took must not be known at their end only.
// It returns false if the request waits, as Return does.
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

// requeue puts a request that has been halted before the others of its queue. It is priced as one that comes: what it
// took until now is what it took.
func (s *Set) requeue(q *Request, now time.Time) {
	f := q.queue
	f.next -= work(float64(q.Seats), assumed-(q.pausedAt.Sub(q.since)-q.away))
	f.executing.remove(q)
	q.returns, q.away, q.total = true, 0, work(float64(q.Seats), assumed)
	s.enqueue(f, q)
	f.bound()
	q.Ready = make(chan struct{}, 1) // one message: that it runs
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
