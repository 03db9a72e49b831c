package control

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// poolWorkers is how many keys of all pooled loops are worked on at the same time.
const poolWorkers = 8

// pool has loops share workers and a queue: loops that mostly rest cost no goroutine each. A key is worked on by one
// worker at a time, and of one loop no more at once than its Workers; loops with something to do take turns.
//
// Its goroutines are those that run starts, and that of the timer that ends a pause.
type pool struct {
	log *slog.Logger

	mu      sync.Mutex
	work    *sync.Cond // there may be something to do
	members []*member
	turn    int // the member that is asked first
	over    bool
}

// member is a loop's part of a pool. Its fields are guarded by pool.mu.
type member struct {
	pool    *pool
	of      *controller
	ready   []string        // to be worked on, in their order
	dirty   map[string]bool // named since the last look at them began
	running map[string]bool // being worked on
	resting map[string]bool // not to be worked on again yet
	failed  map[string]int  // how often in a row
	delays  map[*delay]bool // that are to end
}

// delay is the time until a key is looked at again.
type delay struct{ timer *time.Timer }

func newPool(log *slog.Logger) *pool {
	p := &pool{log: log}
	p.work = sync.NewCond(&p.mu)
	return p
}

// join adds a loop.
func (p *pool) join(c *controller) *member {
	m := &member{
		pool: p, of: c, dirty: map[string]bool{}, running: map[string]bool{}, resting: map[string]bool{},
		failed: map[string]int{}, delays: map[*delay]bool{},
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.members = append(p.members, m)
	return m
}

// Add has a key worked on, once more if that has begun.
func (m *member) Add(key string) {
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	m.addLocked(key)
}

func (m *member) addLocked(key string) {
	if m.pool.over || m.dirty[key] {
		return
	}
	m.dirty[key] = true
	if !m.running[key] && !m.resting[key] {
		m.ready = append(m.ready, key)
		m.pool.work.Signal()
	}
}

// addAfterLocked is Add after a while.
func (m *member) addAfterLocked(key string, d time.Duration) {
	m.afterLocked(d, func() { m.addLocked(key) })
}

// afterLocked has f called after a while, with the lock held.
func (m *member) afterLocked(d time.Duration, f func()) {
	if m.pool.over {
		return
	}
	wait := &delay{}
	m.delays[wait] = true
	wait.timer = time.AfterFunc(d, func() {
		m.pool.mu.Lock()
		defer m.pool.mu.Unlock()
		delete(m.delays, wait)
		f()
	})
}

// restLocked leaves a key alone for a while.
func (m *member) restLocked(key string, d time.Duration) {
	m.resting[key] = true
	m.afterLocked(d, func() {
		delete(m.resting, key)
		m.wakeLocked(key)
	})
}

// wakeLocked has a key worked on that was named while it could not be.
func (m *member) wakeLocked(key string) {
	if m.dirty[key] && !m.running[key] && !m.resting[key] {
		m.ready = append(m.ready, key)
		m.pool.work.Signal()
	}
}

// ShutDown ends the pool: workers return when they have done what they are at.
func (m *member) ShutDown() { m.pool.shutDown() }

func (p *pool) shutDown() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	for _, m := range p.members {
		for wait := range m.delays {
			wait.timer.Stop()
		}
		clear(m.delays)
	}
	p.work.Broadcast()
}

// run starts workers and returns when the pool has been shut down and all have returned.
func (p *pool) run(ctx context.Context) {
	context.AfterFunc(ctx, p.shutDown)
	var wg sync.WaitGroup
	for range poolWorkers {
		wg.Go(func() {
			for {
				m, key := p.next()
				if m == nil {
					return
				}
				p.done(m, key, m.of.work.Reconcile(ctx, key), ctx.Err() != nil)
			}
		})
	}
	wg.Wait()
}

// next waits for a key and takes it; its member is nil when the pool has been shut down.
func (p *pool) next() (*member, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.over {
		for i := range p.members {
			m := p.members[(p.turn+i)%len(p.members)]
			if len(m.ready) == 0 || len(m.running) >= m.of.workers {
				continue
			}
			p.turn = (p.turn + i + 1) % len(p.members)
			key := m.ready[0]
			m.ready[0], m.ready = "", m.ready[1:]
			delete(m.dirty, key)
			m.running[key] = true
			return m, key
		}
		p.work.Wait()
	}
	return nil, ""
}

// done notes that a key has been worked on, and when it is to be again.
func (p *pool) done(m *member, key string, err error, stopped bool) {
	var later Again
	rest := m.of.rest(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(m.running, key)
	if rest >= restLeast && !stopped {
		m.restLocked(key, rest)
	}
	m.wakeLocked(key)
	p.work.Signal() // the loop has one worker less now, and another may take what waited for that
	switch {
	case err == nil || stopped:
		if n := m.failed[key]; n > 1 && !stopped {
			p.log.Info("has succeeded after failures", "controller", m.of.name, "object", key, "failures", n)
		}
		delete(m.failed, key)
	case errors.As(err, &later):
		delete(m.failed, key)
		m.addAfterLocked(key, time.Duration(later))
	default:
		n := m.failed[key]
		m.failed[key] = n + 1
		m.addAfterLocked(key, retryPause(n))
		p.log.Log(context.Background(), retryLevel(n), "will try again",
			"controller", m.of.name, "object", key, "error", err, "failures", n+1)
	}
}

// restLeast is the shortest rest that is worth a timer.
const restLeast = time.Millisecond

// rest returns how long a key is left alone after a look.
func (c *controller) rest(key string) time.Duration {
	if p, ok := c.work.(Pacer); ok {
		return p.Rest(key)
	}
	return 0
}

// retryLevel returns how loud a failure is after so many before it: the first one is said, then the 8th, the 16th, the
// 32nd and so on.
func retryLevel(failures int) slog.Level {
	if n := failures + 1; n == 1 || n >= 8 && n&(n-1) == 0 {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// retryPause returns how long to wait after so many failures before this one.
func retryPause(failures int) time.Duration {
	if failures > 20 {
		return retryMost
	}
	return min(retryFirst<<failures, retryMost)
}
