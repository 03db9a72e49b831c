package queue

import (
	"testing"
	"time"
)

// TestReturn checks that a paused request gets its seats back at once if no other needs them, else before the others of
// its own queue and in the turn of its queue.
func TestReturn(t *testing.T) {
	t.Parallel()
	s := newStage(t, one, 1)
	a := s.enter(Run, &Request{})
	_ = s.Pause(a)
	if !s.Return(a) {
		t.Error("waits although there is a seat")
	}
	s.expect(Usage{Executing: 1, Seats: 1})
	if !s.Return(a) {
		t.Error("what runs waits")
	}
	_ = s.Pause(a)
	b := s.enter(Run, &Request{})
	c := s.enter(Wait, &Request{})
	if s.Return(a) {
		t.Error("does not wait although another has its seat")
	}
	s.expect(Usage{Executing: 1, Seats: 1, Waiting: 2, WaitingSeats: 2})
	started := a.Started
	s.clock = s.clock.Add(time.Second)
	s.Leave(b)
	if !runs(a) || runs(c) {
		t.Error("what comes back is not before what has not begun")
	}
	if a.Started != started || s.class.Dispatched != 2 {
		t.Errorf("it counts as begun anew at %s; %d began", a.Started, s.class.Dispatched)
	}
	s.Leave(a)
	if !runs(c) {
		t.Error("the last does not run")
	}
	s.Leave(c)
	s.expect(Usage{})
}

// TestReturnAtOnce checks that a request with a disconnected client continues out of turn, without costing other
// requests their turn.
func TestReturnAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t, one, 1)
	a := s.enter(Run, &Request{})
	_ = s.Pause(a)
	b := s.enter(Run, &Request{})
	_ = s.Return(a)
	s.Resume(a)
	s.expect(Usage{Executing: 2, Seats: 2})
	s.Resume(a) // it runs
	s.Leave(b)
	s.Leave(a)
	s.expect(Usage{})
	if s.class.Dispatched != 2 {
		t.Errorf("%d began, want 2", s.class.Dispatched)
	}
}

// TestReturnWithoutQueues checks that Return does not wait in a level without queues.
func TestReturnWithoutQueues(t *testing.T) {
	t.Parallel()
	s := newStage(t, Config{}, 1)
	a := s.enter(Run, &Request{})
	_ = s.Pause(a)
	s.enter(Run, &Request{})
	if !s.Return(a) || !s.Yield(a) {
		t.Error("it waits")
	}
	s.expect(Usage{Executing: 2, Seats: 2})
}

// TestYield runs a long request of one flow while a short one of another flow waits: the short one is next, and need
// not wait for the end of the long one.
func TestYield(t *testing.T) {
	t.Parallel()
	s := newStage(t, Config{Queues: 2, Length: 10, Hand: 1}, 1)
	long := s.enter(Run, &Request{Hash: 0})
	if !s.Yield(long) {
		t.Error("yields although nothing waits")
	}
	next := s.enter(Wait, &Request{Hash: 0})
	short := s.enter(Wait, &Request{Hash: 1})
	if !s.Yield(long) {
		t.Error("yields before it has had what a request is taken to need")
	}
	s.clock = s.clock.Add(assumed + time.Millisecond)
	if s.Yield(long) {
		t.Error("does not yield")
	}
	if !runs(short) || runs(long) || runs(next) {
		t.Error("the other flow's request is not next")
	}
	s.expect(Usage{Executing: 1, Seats: 1, Waiting: 2, WaitingSeats: 2})
	s.clock = s.clock.Add(time.Millisecond)
	s.Leave(short)
	if !runs(long) || runs(next) {
		t.Error("the long request is not before the next of its flow")
	}
	s.Leave(long)
	if !runs(next) {
		t.Error("the last does not run")
	}
	s.Leave(next)
	s.expect(Usage{})
}

// TestYieldingIsFair runs four long yielding requests of a greedy flow, and a flow that sends short requests one after
// the other: each waits for one piece of a long request, not for all of them.
func TestYieldingIsFair(t *testing.T) {
	t.Parallel()
	s := newStage(t, Config{Queues: 2, Length: 10, Hand: 1}, 2)
	var greedy []*Request
	for range 4 {
		q := &Request{Class: &s.class, Seats: 1, Hash: 0}
		_ = s.Enter(q)
		greedy = append(greedy, q)
	}
	var modest *Request
	began, served, longest := s.clock, 0, time.Duration(0)
	for range 2000 {
		s.clock = s.clock.Add(time.Millisecond)
		for _, q := range greedy {
			if q.state == running {
				s.Yield(q)
			}
		}
		if modest == nil {
			modest = &Request{Class: &s.class, Seats: 1, Hash: 1}
			began = s.clock
			_ = s.Enter(modest)
		}
		if modest.state == running {
			longest = max(longest, modest.Started.Sub(began))
			s.Leave(modest)
			modest, served = nil, served+1
		}
	}
	if longest > 3*assumed || served < 300 {
		t.Errorf("%d requests were served, one after %s", served, longest)
	}
}
