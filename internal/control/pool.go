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

// idleWorkers is the number of goroutines of a pool that stay when there is nothing to do.
const idleWorkers = 2

// pool works on the keys of a server's loops. One worker at a time works on a key; a loop has at most Workers
// concurrent keys, and all pooled loops together at most poolWorkers. Loops with ready keys take turns. A worker is a
// goroutine that exists while there is something to do: idle loops have none.
type pool struct {
	log *slog.Logger

	mu      sync.Mutex
	more    *sync.Cond // an idle worker has something to do
	members []*member
	turn    int             // the member to try first
	pooled  int             // running keys of pooled loops
	idle    int             // waiting workers
	ctx     context.Context // context of the workers; nil before run
	workers sync.WaitGroup
	over    bool
}

// member is a loop's part of a pool. Its fields are guarded by pool.mu.
type member struct {
	pool    *pool
	of      *controller
	ready   []string               // keys to work on, in order
	dirty   map[string]bool        // requested since the last run began
	running map[string]bool        // in progress
	resting map[string]*time.Timer // not to run again yet
	failed  map[string]int         // consecutive failures
	later   map[string]*delay      // scheduled to run again
}

// delay is the time until a key is looked at again.
type delay struct {
	timer *time.Timer
	end   time.Time
}

func newPool(log *slog.Logger) *pool {
	p := &pool{log: log}
	p.more = sync.NewCond(&p.mu)
	return p
}

// join adds a loop.
func (p *pool) join(c *controller) *member {
	m := &member{
		pool: p, of: c, dirty: map[string]bool{}, running: map[string]bool{}, resting: map[string]*time.Timer{},
		failed: map[string]int{}, later: map[string]*delay{},
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
	m.readyLocked(key)
}

// readyLocked has a key worked on that was named, unless it cannot be yet.
func (m *member) readyLocked(key string) {
	if m.dirty[key] && !m.running[key] && m.resting[key] == nil {
		m.ready = append(m.ready, key)
		m.pool.wakeLocked()
	}
}

// addAfterLocked is Add after a while, or at the time of an earlier call if that is sooner.
func (m *member) addAfterLocked(key string, d time.Duration) {
	if m.pool.over {
		return
	}
	end := time.Now().Add(d)
	if before := m.later[key]; before != nil {
		if !end.Before(before.end) {
			return
		}
		before.timer.Stop()
	}
	wait := &delay{end: end}
	m.later[key] = wait
	wait.timer = time.AfterFunc(d, func() {
		m.pool.mu.Lock()
		defer m.pool.mu.Unlock()
		if m.later[key] == wait {
			delete(m.later, key)
			m.addLocked(key)
		}
	})
}

// restLocked leaves a key alone for a while.
func (m *member) restLocked(key string, d time.Duration) {
	if m.pool.over {
		return
	}
	m.resting[key] = time.AfterFunc(d, func() {
		m.pool.mu.Lock()
		defer m.pool.mu.Unlock()
		delete(m.resting, key)
		m.readyLocked(key)
	})
}

func (p *pool) shutDown() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	for _, m := range p.members {
		for _, wait := range m.later {
			wait.timer.Stop()
		}
		for _, timer := range m.resting {
			timer.Stop()
		}
	}
	p.more.Broadcast()
}

// run has keys worked on until ctx ends or the pool has been shut down, and returns when all workers have.
func (p *pool) run(ctx context.Context) {
	p.mu.Lock()
	p.ctx = ctx
	p.wakeLocked()
	p.mu.Unlock()
	<-ctx.Done()
	p.shutDown() // no worker starts any more
	p.workers.Wait()
}

// wakeLocked starts or wakes a worker if there is a ready key.
func (p *pool) wakeLocked() {
	switch {
	case p.ctx == nil || p.over || p.pickLocked() == nil:
	case p.idle > 0:
		p.idle--
		p.more.Signal()
	default:
		p.workers.Go(p.work)
	}
}

// work handles ready keys.
func (p *pool) work() {
	for {
		m, key := p.next()
		if m == nil {
			return
		}
		p.done(m, key, m.of.work.Reconcile(p.ctx, key), p.ctx.Err() != nil)
	}
}

// next takes a key; its member is nil if there is none and the worker should end.
func (p *pool) next() (*member, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.over {
		if m := p.pickLocked(); m != nil {
			key := m.takeLocked()
			p.wakeLocked() // another worker takes the next one
			return m, key
		}
		if p.idle == idleWorkers {
			break
		}
		p.idle++
		p.more.Wait()
	}
	return nil, ""
}

// pickLocked returns the member of the next key, nil if there is none.
func (p *pool) pickLocked() *member {
	for i := range p.members {
		at := p.turn + i
		if at >= len(p.members) {
			at -= len(p.members)
		}
		m := p.members[at]
		if len(m.ready) == 0 || len(m.running) >= m.of.workers || m.of.pooled && p.pooled == poolWorkers {
			continue
		}
		p.turn = at
		return m
	}
	return nil
}

// takeLocked takes a ready key. The next turn is another member's.
func (m *member) takeLocked() string {
	p, key := m.pool, m.ready[0]
	m.ready[0], m.ready = "", m.ready[1:]
	delete(m.dirty, key)
	m.running[key] = true
	if m.of.pooled {
		p.pooled++
	}
	p.turn = (p.turn + 1) % len(p.members)
	return key
}

// done records the result for a key, and schedules its next run.
func (p *pool) done(m *member, key string, err error, stopped bool) {
	var later Again
	rest := m.of.rest(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(m.running, key)
	if m.of.pooled {
		p.pooled--
	}
	if rest >= restLeast && !stopped {
		m.restLocked(key, rest)
	}
	m.readyLocked(key)
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

// rest returns how long a key rests after a run.
func (c *controller) rest(key string) time.Duration {
	if p, ok := c.work.(Pacer); ok {
		return p.Rest(key)
	}
	return 0
}

// retryLevel returns the log level of a failure after the given number of earlier ones: the first is logged at info,
// then the 8th, the 16th, the 32nd and so on.
func retryLevel(failures int) slog.Level {
	if n := failures + 1; n == 1 || n >= 8 && n&(n-1) == 0 {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// retryPause returns the pause after a failure, given the number of earlier ones.
func retryPause(failures int) time.Duration {
	if failures > 20 {
		return retryMost
	}
	return min(retryFirst<<failures, retryMost)
}
