package queue

import "time"

// fits reports whether a request may take so many more seats. A request that needs more than the limit runs alone.
func (s *Set) fits(seats int) bool {
	if seats > s.limit {
		return s.usage.Executing == 0
	}
	return s.usage.Seats+seats <= s.limit
}

// deal returns the queue in a flow's hand with the least waiting work.
func (s *Set) deal(hash uint64) *fifo {
	var memory [16]int // the maximum size of a hand
	hand := s.dealer.DealIntoHand(hash, memory[:])
	offset := s.deals % len(hand)
	s.deals++
	var best *fifo
	for i := range hand {
		if f := s.queues[hand[(offset+i)%len(hand)]]; best == nil || f.work < best.work {
			best = f
		}
	}
	return best
}

// enqueue puts a request at the end of a queue, or at its beginning if it has run before.
func (s *Set) enqueue(f *fifo, q *Request) {
	if !f.busy() {
		s.busy++
		f.next = s.r
	}
	q.queue, q.state, q.arrivedR = f, waiting, s.r
	if q.returns {
		f.waiting.unshift(q)
	} else {
		f.waiting.push(q)
	}
	f.work += q.total
	f.wants += q.seats()
	f.initial += q.Seats
	s.wanted += q.seats()
	s.usage.Waiting++
	s.usage.WaitingSeats += q.seats()
	q.Class.Waiting++
	q.Class.WaitingSeats += q.seats()
}

// unqueue removes a request from its queue.
func (s *Set) unqueue(q *Request) {
	f := q.queue
	f.waiting.remove(q)
	f.work -= q.total
	f.wants -= q.seats()
	f.initial -= q.Seats
	q.state = gone
	s.wanted -= q.seats()
	s.usage.Waiting--
	s.usage.WaitingSeats -= q.seats()
	q.Class.Waiting--
	q.Class.WaitingSeats -= q.seats()
}

// run gives a request its seats.
func (s *Set) run(q *Request, now time.Time) {
	q.state, q.since = running, now
	s.usage.Executing++
	q.Class.Executing++
	if !q.returns {
		q.Started = now
		q.Class.Dispatched++
	}
	q.returns = false
	s.take(q, q.seats())
	if f := q.queue; f != nil {
		f.running++
		f.executing.push(q)
		return
	}
	s.loose.push(q)
}

// take counts seats that a request takes, or gives back if negative.
func (s *Set) take(q *Request, seats int) {
	s.usage.Seats += seats
	q.Class.Seats += seats
	if f := q.queue; f != nil {
		f.seats += seats
		if !f.removed {
			s.wanted += seats
		}
	}
}

// finish ends a request's run; release frees its seats.
func (s *Set) finish(q *Request, now time.Time) {
	q.state = gone
	s.usage.Executing--
	q.Class.Executing--
	f := q.queue
	if f == nil {
		s.loose.remove(q)
		return
	}
	f.executing.remove(q)
	if f.running--; !f.busy() {
		s.busy--
	}
	f.next -= work(float64(q.Seats), assumed-(now.Sub(q.since)-q.away))
	f.bound()
}

// release frees the seats of a completed request, and removes its queue if there are too many.
func (s *Set) release(q *Request) {
	s.take(q, -q.seats())
	f := q.queue
	if f == nil || f.removed || len(s.queues) <= s.config.Queues || f.waiting.len > 0 || f.executing.len > 0 {
		return
	}
	f.removed = true
	s.wanted -= f.seats
	s.queues = append(s.queues[:f.index], s.queues[f.index+1:]...)
	for i, other := range s.queues[f.index:] {
		other.index = f.index + i
	}
	if s.robin >= f.index {
		s.robin--
	}
}

// dispatch runs requests while seats are free. new is the queue that has just received one, or nil.
func (s *Set) dispatch(new *fifo, now time.Time) {
	for s.usage.Waiting > 0 && s.usage.Seats < s.limit {
		f := s.choose(new)
		q := f.waiting.first
		if !s.fits(q.seats()) {
			q.Class.NoRoom++
			return
		}
		s.robin = f.index
		s.unqueue(q)
		if q.FinalSeats > s.limit { // the same work, on fewer seats
			q.FinalSeats, q.Linger = s.limit, q.final.each(s.limit)
		}
		s.progress.DispatchR, s.progress.Latest = s.r, f.next
		s.run(q, now)
		f.next += q.total
		f.bound()
		if q.Ready != nil {
			q.Ready <- struct{}{}
		}
	}
}

// choose returns the queue with the oldest request that would end first. Among equal ones it prefers the next queue
// after the one last served. At least one queue has requests.
func (s *Set) choose(new *fifo) *fifo {
	if new != nil && new.waiting.len == s.usage.Waiting { // the only queue
		s.seen(new, true)
		return new
	}
	var best *fifo
	first := true
	for i := range s.queues {
		f := s.queues[(s.robin+1+i)%len(s.queues)]
		q := f.waiting.first
		if q == nil {
			continue
		}
		s.seen(f, first)
		first = false
		if best == nil || f.next+q.total < best.next+best.waiting.first.total {
			best = f
		}
	}
	return best
}

// seen notes the state of a queue that might be next.
func (s *Set) seen(f *fifo, first bool) {
	p, discounted := &s.progress, f.next-work(float64(f.seats), assumed)
	if first {
		p.Low, p.High, p.DiscountLow, p.DiscountUp = f.next, f.next, discounted, discounted
		return
	}
	p.Low, p.High = min(p.Low, f.next), max(p.High, f.next)
	p.DiscountLow, p.DiscountUp = min(p.DiscountLow, discounted), max(p.DiscountUp, discounted)
}
