package testserver

import (
	"strings"
	"sync"
	"time"

	"github.com/bowsprit/bowsprit"
)

// WithWorkloads has a server simulate what runs workloads: pods are scheduled on nodes and become ready, Deployments
// become available, Jobs complete. Nothing is run. Each setting is a key and a value of
// bowsprit.WorkloadsConfig.Simulate: "nodes=3". There is one node, node-0, if nothing else is said.
//
//	server := testserver.Start(t, testserver.WithWorkloads("nodes=3", "zones=3"))
func WithWorkloads(settings ...string) func(*bowsprit.Config) {
	return func(c *bowsprit.Config) {
		if c.Workloads.Simulate == nil {
			c.Workloads.Simulate = map[string]string{}
		}
		for _, s := range settings {
			key, value, _ := strings.Cut(s, "=")
			c.Workloads.Simulate[key] = value
		}
	}
}

// WithClock gives a server a clock that the test moves.
func WithClock(clock *Clock) func(*bowsprit.Config) {
	return func(c *bowsprit.Config) { c.Clock = clock }
}

// Clock is the machine's time and what a test has advanced it by. It goes on by itself, so that nothing stands still,
// and what is due at a time to which it is advanced happens at once. Its methods may be called from any goroutine.
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

// Advance moves the clock forward. What is due by then is called meanwhile, in no order.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	now := time.Now().Add(c.ahead)
	for a := range c.pending {
		a.timer.Reset(max(0, a.due.Sub(now)))
	}
}

// AfterFunc calls f in a goroutine of its own after a while by this clock. stop keeps it from being called, and reports
// whether it came in time.
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

// take reports whether an alarm was still to be called, which it is then no more.
func (c *Clock) take(a *alarm) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.pending[a]
	delete(c.pending, a)
	return was
}
