package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// stage is a Set with a manual clock.
type stage struct {
	*Set
	t     *testing.T
	clock time.Time
	later []func()
	class Class
}

func newStage(t *testing.T, c Config, limit int) *stage {
	s := &stage{t: t, clock: time.Unix(1e9, 0)}
	s.Set = NewSet(Options{
		Now:   func() time.Time { return s.clock },
		After: func(_ time.Duration, f func()) { s.later = append(s.later, f) },
	})
	s.Configure(c, limit)
	return s
}

func (s *stage) enter(want Verdict, q *Request) *Request {
	s.t.Helper()
	q.Class = &s.class
	q.Seats = max(q.Seats, 1)
	if got := s.Enter(q); got != want {
		s.t.Errorf("verdict %d, want %d", got, want)
	}
	return q
}

// runs reports whether a request that waited runs.
func runs(q *Request) bool {
	select {
	case <-q.Ready:
		return true
	default:
		return false
	}
}

func (s *stage) expect(want Usage) {
	s.t.Helper()
	if got := s.Usage(); got != want {
		s.t.Errorf("usage %+v, want %+v", got, want)
	}
}

var one = Config{Queues: 1, Length: 2, Hand: 1}

func TestSeatsAndQueue(t *testing.T) {
	t.Parallel()
	s := newStage(t, one, 2)
	a := s.enter(Run, &Request{})
	b := s.enter(Run, &Request{})
	c := s.enter(Wait, &Request{})
	d := s.enter(Wait, &Request{Seats: 2})
	s.enter(Full, &Request{})
	s.expect(Usage{Waiting: 2, WaitingSeats: 3, Executing: 2, Seats: 2})
	s.Leave(a)
	if !runs(c) || runs(d) {
		t.Error("the first that waits does not run, or the second does")
	}
	s.Leave(b)
	if runs(d) {
		t.Error("two seats are given away while there is one")
	}
	s.Leave(c)
	if !runs(d) {
		t.Error("two seats are free and are not given away")
	}
	if s.GiveUp(d) {
		t.Error("what runs gives up")
	}
	s.Leave(d)
	s.expect(Usage{})
	if s.class.Dispatched != 4 || s.class.Rejected != [4]uint64{Full: 1} || s.class.NoRoom == 0 {
		t.Errorf("counted %+v", s.class)
	}
}

func TestGiveUp(t *testing.T) {
	t.Parallel()
	s := newStage(t, one, 1)
	a := s.enter(Run, &Request{})
	b := s.enter(Wait, &Request{})
	c := s.enter(Wait, &Request{})
	if !s.GiveUp(b) {
		t.Error("what waits cannot give up")
	}
	s.Leave(a)
	if !runs(c) || runs(b) {
		t.Error("what gave up is in the way")
	}
	s.Leave(c)
	s.expect(Usage{})
	if s.class.Rejected != [4]uint64{Wait: 1} {
		t.Errorf("counted %+v", s.class)
	}
}

func TestNoQueues(t *testing.T) {
	t.Parallel()
	s := newStage(t, Config{}, 2)
	wide := s.enter(Run, &Request{Seats: 5}) // more than the limit: it runs alone
	s.enter(NoSeat, &Request{})
	s.Leave(wide)
	a := s.enter(Run, &Request{})
	s.enter(NoSeat, &Request{Seats: 5})
	s.Leave(a)
	s.expect(Usage{})
}

func TestExempt(t *testing.T) {
	t.Parallel()
	s := newStage(t, Config{Exempt: true}, 0)
	for range 10 {
		s.enter(Run, &Request{})
	}
	s.expect(Usage{Executing: 10, Seats: 10})
}

func TestLinger(t *testing.T) {
	t.Parallel()
	s := newStage(t, one, 3)
	a := s.enter(Run, &Request{FinalSeats: 3, Linger: time.Millisecond})
	b := s.enter(Wait, &Request{})
	s.Leave(a)
	if runs(b) || len(s.later) != 1 {
		t.Fatal("seats of what lingers are free")
	}
	s.expect(Usage{Waiting: 1, WaitingSeats: 1, Seats: 3})
	s.later[0]()
	if !runs(b) {
		t.Error("seats stay taken when nothing lingers")
	}
}

// TestPause checks that a paused request lets another run, and resumes without waiting.
func TestPause(t *testing.T) {
	t.Parallel()
	s := newStage(t, one, 1)
	a := s.enter(Run, &Request{})
	b := s.enter(Wait, &Request{})
	if !s.Pause(a) || s.Pause(a) {
		t.Error("a request that runs cannot pause, or one that pauses can")
	}
	if !runs(b) {
		t.Error("the seat of what pauses is not given away")
	}
	s.expect(Usage{Executing: 1, Seats: 1, Paused: 1})
	if s.Idle() {
		t.Error("idle while a request pauses")
	}
	s.Resume(a)
	s.expect(Usage{Executing: 2, Seats: 2})
	s.enter(Wait, &Request{})
	s.Leave(b)
	s.expect(Usage{Executing: 1, Seats: 1, Waiting: 1, WaitingSeats: 1})
	_ = s.Pause(a)
	s.Leave(a) // while it is paused
	s.expect(Usage{Executing: 1, Seats: 1})
}

// TestPauseBounds checks that the number of paused requests is limited, because they take memory.
func TestPauseBounds(t *testing.T) {
	t.Parallel()
	s := newStage(t, Config{Queues: 1, Length: 100, Hand: 1}, 2)
	paused := 0
	for range 40 {
		q := &Request{Class: &s.class, Seats: 1}
		if s.Enter(q) == Run && s.Pause(q) {
			paused++
		}
	}
	if paused != 2*pauseFactor {
		t.Errorf("%d requests pause, want %d", paused, 2*pauseFactor)
	}
}

// TestPausedTimeIsFree checks that a flow is not charged for paused time.
func TestPausedTimeIsFree(t *testing.T) {
	t.Parallel()
	s := newStage(t, Config{Queues: 2, Length: 10, Hand: 1}, 1)
	slow := s.enter(Run, &Request{Hash: 0})
	_ = s.Pause(slow)
	s.clock = s.clock.Add(time.Minute)
	s.Resume(slow)
	mine := s.enter(Wait, &Request{Hash: 0})
	other := s.enter(Wait, &Request{Hash: 1})
	s.Leave(slow)
	if !runs(mine) && !runs(other) {
		t.Error("nothing runs")
	}
	queues, _ := s.Dump()
	if next := queues[0].NextR; next.Seconds() > 1 {
		t.Errorf("the flow is charged %s for a minute in which it used nothing", next)
	}
}

// TestFairness shares seats between a demanding and a modest flow: both get the same, and the first gets the rest that
// the second leaves.
func TestFairness(t *testing.T) {
	t.Parallel()
	s := newStage(t, Config{Queues: 64, Length: 50, Hand: 6}, 10)
	r := rand.New(rand.NewPCG(1, 1))
	const greedy, modest = 0x0123456789abcdef, 0x0fedcba987654321
	var running []*Request
	waits := map[*Request]int{}
	worst, served := 0, map[uint64]int{}
	arrive := func(hash uint64) {
		q := &Request{Class: &s.class, Seats: 1, Hash: hash}
		switch s.Enter(q) {
		case Run:
			running = append(running, q)
		case Wait:
			waits[q] = 0
		}
	}
	for round := range 2000 {
		for range 30 {
			arrive(greedy)
		}
		if round%2 == 0 {
			arrive(modest)
		}
		for range min(10, len(running)) { // each round ends ten requests
			at := r.IntN(len(running))
			q := running[at]
			running = slices.Delete(running, at, at+1)
			served[q.Hash]++
			s.Leave(q)
			for w := range waits {
				if runs(w) {
					running = append(running, w)
					if w.Hash == modest {
						worst = max(worst, waits[w])
					}
					delete(waits, w)
				}
			}
		}
		for w := range waits {
			waits[w]++
		}
		s.clock = s.clock.Add(3 * time.Millisecond)
	}
	if worst > 3 {
		t.Errorf("a request of the modest flow waited %d rounds", worst)
	}
	if served[modest] < 990 || served[greedy] < 18_000 {
		t.Errorf("served %v", served)
	}
}

// TestSumsAgree runs random operations and compares the maintained sums with recomputed ones.
func TestSumsAgree(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := newStage(t, Config{Queues: 8, Length: 4, Hand: 2}, 5)
		var all []*Request
		for range 300 {
			act(s, r, &all)
			if diff := s.disagree(); diff != "" {
				t.Fatalf("seed %d: %s", seed, diff)
			}
		}
	}
}

func act(s *stage, r *rand.Rand, all *[]*Request) {
	s.clock = s.clock.Add(time.Duration(r.IntN(3000)) * time.Microsecond)
	if r.IntN(30) == 0 {
		hand := 1 + r.IntN(3)
		s.Configure(Config{Queues: hand + r.IntN(8), Length: 1 + r.IntN(4), Hand: hand}, r.IntN(8))
	}
	if len(*all) == 0 || r.IntN(3) == 0 {
		q := &Request{Class: &s.class, Seats: 1 + r.IntN(3), Hash: r.Uint64() >> 4}
		if r.IntN(3) == 0 {
			q.FinalSeats, q.Linger = 1+r.IntN(6), time.Millisecond
		}
		if v := s.Enter(q); v == Run || v == Wait {
			*all = append(*all, q)
		}
		return
	}
	at := r.IntN(len(*all))
	switch q := (*all)[at]; {
	case q.state == waiting && q.returns:
		if r.IntN(4) == 0 {
			s.Resume(q)
		}
	case q.state == waiting && r.IntN(4) == 0:
		s.GiveUp(q)
		*all = slices.Delete(*all, at, at+1)
	case q.state == running && r.IntN(2) == 0:
		s.Pause(q)
	case q.state == paused && r.IntN(2) == 0:
		s.Resume(q)
	case q.state == paused && r.IntN(2) == 0:
		s.Return(q)
	case q.state == running && r.IntN(2) == 0:
		s.Yield(q)
	case q.state == running, q.state == paused:
		s.Leave(q)
		*all = slices.Delete(*all, at, at+1)
	}
	if len(s.later) > 0 && r.IntN(2) == 0 {
		f := s.later[0]
		s.later = s.later[1:]
		f()
	}
}

// disagree returns the sums that are wrong.
func (s *stage) disagree() string {
	busy, wanted, waiting, executing := 0, 0, 0, 0
	for i, f := range s.queues {
		waits, runs := 0, 0
		for q := f.waiting.first; q != nil; q = q.after {
			waits += q.seats()
			waiting++
		}
		for q := f.executing.first; q != nil; q = q.after {
			if q.state == running {
				runs++
			}
		}
		executing += runs
		if f.index != i || f.wants != waits || f.running != runs || f.seats < 0 {
			return fmt.Sprintf("queue %d: %+v", i, f)
		}
		if f.busy() {
			busy++
		}
		wanted += waits + f.seats
	}
	if busy != s.busy || wanted != s.wanted || waiting != s.usage.Waiting || executing != s.usage.Executing {
		return fmt.Sprintf("%d busy, %d wanted, %d waiting, %d executing; sums %d, %d, %+v", busy, wanted, waiting,
			executing, s.busy, s.wanted, s.usage)
	}
	return ""
}

// TestRewind checks that rewinding the meter has no effect.
func TestRewind(t *testing.T) {
	t.Parallel()
	s := newStage(t, Config{Queues: 2, Length: 9, Hand: 1}, 1)
	a := s.enter(Run, &Request{Hash: 0})
	b := s.enter(Wait, &Request{Hash: 1})
	c := s.enter(Wait, &Request{Hash: 0})
	for _, f := range s.queues {
		f.next += epoch
	}
	for _, q := range []*Request{b, c} {
		q.arrivedR += epoch
	}
	s.r += epoch
	s.Leave(a)
	if !runs(b) || runs(c) {
		t.Error("the order is another one")
	}
	s.Leave(b)
	if !runs(c) {
		t.Error("nothing runs")
	}
	if s.r >= epoch/2 || s.progress.Epochs != 1 {
		t.Errorf("R is %d after %d rewinds", s.r, s.progress.Epochs)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for c, ok := range map[Config]bool{
		{}: true, {Exempt: true}: true, {Queues: 64, Length: 50, Hand: 6}: true, {Queues: 3, Hand: 4}: false,
		{Queues: 1 << 10, Hand: 10}: false,
	} {
		if err := c.Check(); (err == nil) != ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func BenchmarkUncontended(b *testing.B) {
	s := NewSet(Options{})
	s.Configure(Config{Queues: 128, Length: 50, Hand: 6}, 100)
	var class Class
	var q Request
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q = Request{Class: &class, Seats: 1, Hash: uint64(i) * 0x9e3779b97f4a7c15 >> 4}
		if s.Enter(&q) != Run {
			b.Fatal("it waits")
		}
		s.Leave(&q)
	}
}
