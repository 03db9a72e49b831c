package queue

import "time"

// QueueDump describes one queue on the debug pages.
type QueueDump struct {
	Executing, Seats       int
	NextR, Work            Work
	InitialSeats, MaxSeats int // of waiting requests
	Requests               []RequestDump
	Running                []RequestDump
}

// RequestDump describes a request on the debug pages.
type RequestDump struct {
	Class             *Class
	Flow              string
	Info              any
	Arrived, Started  time.Time
	Seats, FinalSeats int
	Linger            time.Duration
}

// Dump returns the queues, and running requests without a queue.
func (s *Set) Dump() (queues []QueueDump, loose []RequestDump) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.queues {
		queues = append(queues, QueueDump{
			Executing: f.executing.len, Seats: f.seats, NextR: f.next, Work: f.work, InitialSeats: f.initial,
			MaxSeats: f.wants, Requests: f.waiting.dump(), Running: f.executing.dump(),
		})
	}
	return queues, s.loose.dump()
}

func (l *list) dump() (out []RequestDump) {
	for q := l.first; q != nil; q = q.after {
		out = append(out, RequestDump{
			Class: q.Class, Flow: q.Flow, Info: q.Info, Arrived: q.Arrived, Started: q.Started, Seats: q.Seats,
			FinalSeats: q.FinalSeats, Linger: q.Linger,
		})
	}
	return out
}
