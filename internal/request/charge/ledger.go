package charge

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/authentication/user"
)

const (
	// Least is the least bound of a ledger: two users can send their largest bodies at the same time.
	Least = 320 << 20
	// reservePart is the part of the bound that only administrators, nodes and components may take.
	reservePart = 8
	// retryAfter is the time, in seconds, after which a refused client should try again.
	retryAfter = 1
	// giveBack is the weight, in bytes, from which the collector is eager.
	giveBack = 16 << 20
	// returned is the weight, in bytes, of one or more ended requests after which memory goes back to the system.
	returned = 4 << 20
	// pause is the least time between two returns of memory to the system. Each collects all garbage, which takes long
	// with many objects: share bounds the part of the time that returns take.
	pause = 3 * time.Second
	share = 20
)

// The reasons of a refusal, as the metric names them.
const (
	tooMany = "elements"
	noRoom  = "bound"
)

// Ledger holds the weights of the requests under way, by user, below one bound.
//
// A user other than administrators, nodes and components may hold as much as is left then, and no more. The first user
// who sends large bodies so gets half of the bound, the next one half of the rest: the largest holder is refused first,
// and a user who holds nothing finds room.
type Ledger struct {
	bound   int64
	refusal *prometheus.CounterVec
	ended   chan struct{} // capacity 1: a second signal adds nothing

	mu     sync.Mutex // guards the following
	held   int64
	byUser map[string]int64
	eager  bool  // the collector is, because of this ledger
	given  int64 // weight of the requests that have ended since the last signal
}

// New returns a ledger with a bound for the bytes of all requests together, at least Least.
func New(bound int64) *Ledger {
	return &Ledger{
		bound: max(bound, Least), ended: make(chan struct{}, 1), byUser: map[string]int64{},
		refusal: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bowsprit_request_memory_refused_total",
			Help: "Number of requests refused for their estimated memory: bodies with too many elements (reason elements, " +
				"413), and requests that exceed the common limit together with others (reason bound, 429).",
		}, []string{"reason"}),
	}
}

// Register adds the ledger's metrics to a registry.
func (l *Ledger) Register(to *prometheus.Registry) {
	to.MustRegister(l.refusal, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "bowsprit_request_memory_bytes",
		Help: "Estimated memory of the running requests, without small ones.",
	}, func() float64 {
		l.mu.Lock()
		defer l.mu.Unlock()
		return float64(l.held)
	}), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "bowsprit_request_memory_limit_bytes",
		Help: "Limit of the estimated memory of all running requests.",
	}, func() float64 { return float64(l.bound) }))
}

// take adds n bytes to a user's weight, if there is room.
func (l *Ledger) take(u user.Info, n int64) bool {
	name := u.GetName()
	l.mu.Lock()
	defer l.mu.Unlock()
	room := l.bound - l.held - n
	if !reserved(u) {
		room -= l.bound/reservePart + l.byUser[name] + n
	}
	if room < 0 {
		return false
	}
	l.held += n
	l.byUser[name] += n
	l.paceLocked()
	return true
}

// give takes n bytes off a user's weight.
func (l *Ledger) give(u user.Info, n int64) {
	name := u.GetName()
	l.mu.Lock()
	l.held -= n
	if l.byUser[name] -= n; l.byUser[name] == 0 {
		delete(l.byUser, name)
	}
	l.paceLocked()
	l.given += n
	much := l.given >= returned
	if much {
		l.given = 0
	}
	l.mu.Unlock()
	if !much {
		return
	}
	select {
	case l.ended <- struct{}{}:
	default:
	}
}

// paceLocked makes the garbage collector eager while the requests under way hold much memory.
func (l *Ledger) paceLocked() {
	much := l.held >= giveBack
	if much == l.eager {
		return
	}
	if l.eager = much; much {
		collector.begin()
	} else {
		collector.end()
	}
}

func (l *Ledger) refused(reason string) { l.refusal.WithLabelValues(reason).Inc() }

// Run returns memory to the system after requests that took much, by and by, until ctx ends.
func (l *Ledger) Run(ctx context.Context) error { return l.run(ctx, debug.FreeOSMemory) }

func (l *Ledger) run(ctx context.Context, release func()) error {
	for {
		select {
		case <-l.ended:
		case <-ctx.Done():
			return nil
		}
		begun := time.Now()
		release()
		select {
		case <-time.After(max(pause, share*time.Since(begun))):
		case <-ctx.Done():
			return nil
		}
	}
}
