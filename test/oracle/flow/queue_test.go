package flow

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/queueset"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/testing/eventclock"
	"k8s.io/apiserver/pkg/util/flowcontrol/metrics"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"

	"github.com/bowsprit/bowsprit/internal/front/flow/queue"
)

// TestQueues plays the same requests to Kubernetes' queueset and to ours. They arrive, end, give up and linger at
// random, while the number of seats and of queues changes. After each step the same requests must run.
func TestQueues(t *testing.T) {
	t.Parallel()
	for seed := range cases(t, 100) {
		r := rand.New(rand.NewPCG(uint64(seed), 15))
		p := newPlay(t, r)
		for step := range 200 {
			p.step()
			if diff := p.compare(); diff != "" {
				t.Fatalf("seed %d, step %d: %s", seed, step, diff)
			}
		}
	}
}

// play drives both sides.
type play struct {
	t     *testing.T
	r     *rand.Rand
	clock *eventclock.Fake
	kube  fairqueuing.QueueSet
	ours  *queue.Set
	later []timer // of ours
	class queue.Class
	made  int
	// lingers is true if requests linger. Then the number of queues never falls: when a lingering request ends after
	// its queue, Kubernetes removes the queue that has its number now.
	lingers bool
	queues  int
	pairs   map[string]*pair // waiting and running requests, by id
}

type timer struct {
	at time.Time
	f  func()
}

// pair is one request on both sides.
type pair struct {
	kube   fairqueuing.Request
	cancel context.CancelFunc
	ours   queue.Request
}

type noGauge struct{}

func (noGauge) Set(float64)            {}
func (noGauge) Inc()                   {}
func (noGauge) Dec()                   {}
func (noGauge) Add(float64)            {}
func (noGauge) SetToCurrentTime()      {}
func (noGauge) SetDenominator(float64) {}

func newPlay(t *testing.T, r *rand.Rand) *play {
	p := &play{t: t, r: r, pairs: map[string]*pair{}, lingers: r.IntN(2) == 0}
	p.clock, _ = eventclock.NewFake(time.Unix(1e9, 0), 0, nil)
	p.ours = queue.NewSet(queue.Options{
		Now: p.clock.Now,
		After: func(d time.Duration, f func()) {
			p.later = append(p.later, timer{p.clock.Now().Add(d), f})
		},
	})
	completer, err := queueset.NewQueueSetFactory(p.clock).BeginConstruction(fairqueuing.QueuingConfig{},
		metrics.RatioedGaugePair{RequestsWaiting: noGauge{}, RequestsExecuting: noGauge{}}, noGauge{}, noGauge{})
	if err != nil {
		t.Fatal(err)
	}
	p.kube = completer.Complete(fairqueuing.DispatchingConfig{ConcurrencyLimit: 1, ConcurrencyDenominator: 1})
	p.ours.Configure(queue.Config{}, 1)
	p.configure()
	return p
}

func (p *play) configure() {
	c := queue.Config{Length: 1 + p.r.IntN(6), Hand: 1 + p.r.IntN(4)}
	c.Queues = c.Hand + p.r.IntN(12)
	if p.lingers {
		p.queues = max(p.queues, c.Queues)
		c.Queues = p.queues
	} else if p.r.IntN(8) == 0 {
		c = queue.Config{}
	}
	limit := 1 + p.r.IntN(12)
	completer, err := p.kube.BeginConfigChange(fairqueuing.QueuingConfig{
		Name: "oracle", DesiredNumQueues: c.Queues, QueueLengthLimit: c.Length, HandSize: c.Hand,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	completer.Complete(fairqueuing.DispatchingConfig{ConcurrencyLimit: limit, ConcurrencyDenominator: limit})
	p.ours.Configure(c, limit)
}

func (p *play) step() {
	switch n := p.r.IntN(100); {
	case n < 45:
		p.enter()
	case n < 75:
		p.leave()
	case n < 80:
		p.giveUp()
	case n < 98:
		p.pass(time.Duration(p.r.ExpFloat64() * float64(3*time.Millisecond)))
	default:
		p.configure()
	}
}

func (p *play) enter() {
	p.made++
	id := fmt.Sprint(p.made)
	flow := uint64(p.r.IntN(6)) * 0x9e3779b97f4a7c15 >> 4
	work := fcrequest.WorkEstimate{InitialSeats: 1}
	if p.r.IntN(4) == 0 {
		work.InitialSeats = uint64(1 + p.r.IntN(14))
	}
	if p.lingers && p.r.IntN(3) == 0 {
		work.FinalSeats = uint64(1 + p.r.IntN(14))
		work.AdditionalLatency = time.Duration(1+p.r.IntN(10)) * time.Millisecond
	}
	ctx, cancel := context.WithCancel(context.Background())
	one := &pair{cancel: cancel}
	one.kube, _ = p.kube.StartRequest(ctx, &work, flow, id, "schema", nil, nil, nil)
	one.ours = queue.Request{
		Class: &p.class, Seats: int(work.InitialSeats), FinalSeats: int(work.FinalSeats),
		Linger: work.AdditionalLatency, Hash: flow, Flow: id,
	}
	verdict := p.ours.Enter(&one.ours)
	if rejected := verdict == queue.Full || verdict == queue.NoSeat; rejected != (one.kube == nil) {
		p.t.Fatalf("request %s: kube rejects %v, ours %v", id, one.kube == nil, rejected)
	} else if rejected {
		cancel()
		return
	}
	p.pairs[id] = one
}

// pick returns a request that runs, or waits.
func (p *play) pick(runs bool) (string, *pair) {
	var ids []string
	for id, one := range p.pairs {
		if one.ours.Started.IsZero() != runs {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return "", nil
	}
	slices.Sort(ids)
	id := ids[p.r.IntN(len(ids))]
	return id, p.pairs[id]
}

func (p *play) leave() {
	id, one := p.pick(true)
	if one == nil {
		return
	}
	delete(p.pairs, id)
	ran := false
	one.kube.Finish(func() { ran = true })
	one.cancel()
	if !ran {
		p.t.Fatalf("request %s runs here and not there", id)
	}
	p.ours.Leave(&one.ours)
}

func (p *play) giveUp() {
	id, one := p.pick(false)
	if one == nil {
		return
	}
	delete(p.pairs, id)
	one.cancel()
	one.kube.Finish(func() { p.t.Fatalf("request %s waits here and runs there", id) })
	if !p.ours.GiveUp(&one.ours) {
		p.t.Fatalf("request %s cannot give up", id)
	}
}

// pass advances the time; lingering requests end at their time.
func (p *play) pass(d time.Duration) {
	until := p.clock.Now().Add(d)
	for {
		slices.SortStableFunc(p.later, func(a, b timer) int { return a.at.Compare(b.at) })
		if len(p.later) == 0 || p.later[0].at.After(until) {
			break
		}
		next := p.later[0].at
		p.clock.SetTime(next)
		for len(p.later) > 0 && !p.later[0].at.After(next) {
			f := p.later[0].f
			p.later = p.later[1:]
			f()
		}
	}
	p.clock.SetTime(until)
}

// compare returns the differences between the sides.
func (p *play) compare() string {
	kube, ours := map[string]bool{}, map[string]bool{}
	there := p.kube.Dump(false)
	for _, q := range there.Queues {
		for _, r := range q.RequestsExecuting {
			kube[r.FlowDistinguisher] = true
		}
	}
	for _, r := range there.QueuelessExecutingRequests {
		kube[r.FlowDistinguisher] = true
	}
	queues, loose := p.ours.Dump()
	for i, q := range queues {
		for _, r := range q.Running {
			ours[r.Flow] = true
		}
		if len(queues) != len(there.Queues) {
			return fmt.Sprintf("%d queues, want %d", len(queues), len(there.Queues))
		}
		if at := there.Queues[i].NextDispatchR; len(q.Requests)+len(q.Running) > 0 && at != q.NextR.String() {
			return fmt.Sprintf("queue %d is next at %s, want %s", i, q.NextR, at)
		}
	}
	for _, r := range loose {
		ours[r.Flow] = true
	}
	use := p.ours.Usage()
	if !maps.Equal(kube, ours) || use.Waiting != there.Waiting || use.Seats != there.SeatsInUse {
		return fmt.Sprintf("running %v, waiting %d, seats %d; want %v, %d, %d", slices.Sorted(maps.Keys(ours)),
			use.Waiting, use.Seats, slices.Sorted(maps.Keys(kube)), there.Waiting, there.SeatsInUse)
	}
	return ""
}
