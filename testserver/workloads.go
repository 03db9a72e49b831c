package testserver

import (
	"strings"
	"sync"
	"time"

	"github.com/bowsprit/bowsprit"
)

// WithWorkloads makes a server simulate workloads: pods are scheduled on nodes and become ready, Deployments become
// available, Jobs complete. No containers run. Each setting is a key and a value of bowsprit.WorkloadsConfig.Simulate:
// "nodes=3". The default is one node, node-0.
//
//	server := testserver.Start(t, testserver.WithWorkloads("nodes=3", "zones=3"))
func WithWorkloads(settings ...string) func(*bowsprit.Config) {
	return func(c *bowsprit.Config) {
		c.Workloads.Simulation = nil
		if c.Workloads.Simulate == nil {
			c.Workloads.Simulate = map[string]string{}
		}
		for _, s := range settings {
			key, value, _ := strings.Cut(s, "=")
			c.Workloads.Simulate[key] = value
		}
	}
}

// WithSimulation is WithWorkloads with the settings as a struct.
//
//	nodes := 3
//	server := testserver.Start(t, testserver.WithSimulation(bowsprit.Simulation{Nodes: &nodes, Zones: 3}))
func WithSimulation(s bowsprit.Simulation) func(*bowsprit.Config) {
	return func(c *bowsprit.Config) { c.Workloads.Simulate, c.Workloads.Simulation = nil, &s }
}

// WithClock gives a server a clock that the test moves.
func WithClock(clock *Clock) func(*bowsprit.Config) {
	return func(c *bowsprit.Config) { c.Clock = clock }
}

// Clock is the machine's time plus the time by which a test has advanced it. It continues to run by itself. Timers that
// are due when a test advances it fire at once. Its methods may be called from any goroutine.
type Clock struct {
	mu      sync.Mutex
	ahead   time.Duration
	pending map[*alarm]bool
}

var _ bowsprit.Clock = (*Clock)(nil)

// alarm is a function to be called.
type alarm struct {
	due   time.Time // by the clock
	timer *time.Timer
}

// NewClock returns a clock with the machine's time.
func NewClock() *Clock { return &Clock{pending: map[*alarm]bool{}} }

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// Advance moves the clock forward. It fires the timers that are due, in no order.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	now := time.Now().Add(c.ahead)
	for a := range c.pending {
		a.timer.Reset(max(0, a.due.Sub(now)))
	}
}

// AfterFunc calls f in a goroutine of its own after d by this clock. stop prevents the call, and reports whether it
// came in time.
func (c *Clock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &alarm{due: time.Now().Add(c.ahead + d)}
	a.timer = time.AfterFunc(d, func() {
		if c.take(a) {
			f()
		}
	})
	c.pending[a] = true
	return func() bool {
		a.timer.Stop()
		return c.take(a)
	}
}

// take removes a pending alarm, and reports whether it was pending.
func (c *Clock) take(a *alarm) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.pending[a]
	delete(c.pending, a)
	return was
}
