package flow

import (
	"math"
	"sync"
	"time"

	"github.com/bowsprit/bowsprit/internal/front/flow/queue"
)

// The bounds of kube-apiserver's histograms.
var (
	timeBounds   = []float64{0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30}
	lengthBounds = []float64{0, 10, 25, 50, 100, 250, 500, 1000}
	watchBounds  = []float64{0, 1, 10, 100, 1000, 10000}
	costBounds   = []float64{1, 2, 4, 8, 16, 32, 64, 100}

	seatBounds    = []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1}
	requestBounds = []float64{0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1}
	kindBounds    = []float64{0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1}
	demandBounds  = []float64{0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.7, 2, 2.8, 4, 6}
)

// histogram counts values. A histogram of the metrics library would cost each request more than the rest of this
// package.
type histogram struct {
	bounds []float64
	counts []uint64 // one more than bounds; nil before the first value
	sum    float64
}

func (h *histogram) observe(v float64, weight uint64) {
	if h.counts == nil {
		h.counts = make([]uint64, len(h.bounds)+1)
	}
	at := 0 // most values are below the first bounds
	for at < len(h.bounds) && v > h.bounds[at] {
		at++
	}
	h.counts[at] += weight
	h.sum += v * float64(weight)
}

// ratio observes a value, as a fraction of its maximum, at the end of every nanosecond.
type ratio struct {
	histogram
	at        time.Time
	value, of float64
}

func newRatio(bounds []float64, now time.Time) ratio {
	return ratio{histogram: histogram{bounds: bounds}, at: now, of: 1}
}

func (r *ratio) set(now time.Time, v float64) {
	if v == r.value {
		return // the time since the last change is counted later
	}
	r.settle(now)
	r.value = v
}

func (r *ratio) bound(now time.Time, of float64) {
	r.settle(now)
	r.of = max(of, 1)
}

func (r *ratio) settle(now time.Time) {
	if d := now.Sub(r.at); d > 0 {
		r.observe(r.value/r.of, uint64(d))
		r.at = now
	}
}

// integral is the moments of a value over time, since it was last reset.
type integral struct {
	at    time.Time
	value float64
	moments
}

// moments are integrals of the powers of a value.
type moments struct{ seconds, first, second, peak float64 }

func (i *integral) set(now time.Time, v float64) {
	if v == i.value {
		return
	}
	i.settle(now)
	i.value = v
	i.peak = max(i.peak, v)
}

func (i *integral) settle(now time.Time) {
	d := now.Sub(i.at).Seconds()
	i.at = now
	i.seconds += d
	i.first += d * i.value
	i.second += d * i.value * i.value
}

func (i *integral) reset(now time.Time) moments {
	i.settle(now)
	out := i.moments
	i.moments = moments{peak: i.value}
	return out
}

// mean returns the average and the standard deviation, of more than no time.
func (m moments) mean() (average, deviation float64) {
	average = m.first / m.seconds
	return average, math.Sqrt(max(0, m.second/m.seconds-average*average))
}

// class holds the metrics of a schema's requests in one level. The lock of the level's set guards all fields except
// name.
type class struct {
	name   string
	counts queue.Class
	// waits is indexed by whether the request ran afterwards, runs by whether it was a watch.
	waits, runs             [2]histogram
	seats, lengths, watches histogram
}

var _ queue.Observer = (*class)(nil)

func newClass(name string) *class {
	k := &class{name: name}
	for i := range 2 {
		k.waits[i].bounds, k.runs[i].bounds = timeBounds, timeBounds
	}
	k.seats.bounds, k.lengths.bounds, k.watches.bounds = costBounds, lengthBounds, watchBounds
	k.counts.Observer = k
	return k
}

// Entered implements queue.Observer.
func (k *class) Entered(q *queue.Request, v queue.Verdict, length int) {
	t := q.Info.(*Ticket)
	k.seats.observe(float64(max(q.Seats, q.FinalSeats)), 1)
	if t.watchers >= 0 {
		k.watches.observe(float64(t.watchers), 1)
	}
	if length > 0 {
		k.lengths.observe(float64(length), 1)
	}
	if v != queue.Wait && !t.schema.level.exempt {
		k.waited(v == queue.Run, 0)
	}
}

// Left implements queue.Observer.
func (k *class) Left(q *queue.Request, now time.Time) {
	watch := q.Info.(*Ticket).info.Verb == watchVerb
	k.runs[index(watch)].observe(now.Sub(q.Started).Seconds(), 1)
}

func (k *class) waited(runs bool, d time.Duration) { k.waits[index(runs)].observe(d.Seconds(), 1) }

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// kindUse counts the reads, or the writes, in all levels.
type kindUse struct {
	mu     sync.Mutex // guards the following; no other lock is taken while it is held
	phases [2]ratio
}

type phase int

const (
	waiting phase = iota
	executing
)

func newKindUse(now time.Time) (k *kindUse) {
	k = &kindUse{}
	for i := range k.phases {
		k.phases[i] = newRatio(kindBounds, now)
	}
	return k
}

func (k *kindUse) add(now time.Time, p phase, n float64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := &k.phases[p]
	r.set(now, r.value+n)
}

func (k *kindUse) bounds(now time.Time, waits, runs int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.phases[waiting].bound(now, float64(waits))
	k.phases[executing].bound(now, float64(runs))
}

// kind is the index of Controller.kinds.
func kind(write bool) int { return index(write) }
