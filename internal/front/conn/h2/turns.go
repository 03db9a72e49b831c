package h2

import (
	"runtime"
	"sync"
	"time"
)

// turns gives turns to the streams that were handed over. A few goroutines, as many as cores, serve the connections
// with streams that were woken: an event for all streams of a connection costs one wake-up and one write to its socket.
type turns struct {
	mu      sync.Mutex
	queue   []*conn // with woken streams, in order of arrival
	workers int
}

// add queues a connection. It does not wait.
func (t *turns) add(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = append(t.queue, c)
	if t.workers < runtime.GOMAXPROCS(0) {
		t.workers++
		go t.work()
	}
}

// work serves connections until none is queued.
func (t *turns) work() {
	for {
		t.mu.Lock()
		if len(t.queue) == 0 {
			t.workers--
			t.queue = nil // an idle server keeps no references
			t.mu.Unlock()
			return
		}
		c := t.queue[0]
		t.queue[0] = nil
		t.queue = t.queue[1:]
		t.mu.Unlock()
		c.takeTurns()
	}
}

// woken holds the streams of a connection that want a turn.
type woken struct {
	mu      sync.Mutex
	streams []*stream
	spare   []*stream // memory of streams
	queued  bool      // the connection is in turns.queue, or a worker serves it
}

// takeTurns gives each woken stream a turn, and sends their frames together.
func (c *conn) takeTurns() {
	c.woken.mu.Lock()
	streams := c.woken.streams
	c.woken.streams, c.woken.spare = c.woken.spare, nil
	c.woken.mu.Unlock()
	now := time.Now()
	for _, st := range streams {
		st.carried.woken.Store(false)
		st.turn(now)
	}
	c.mu.Lock()
	c.flush()
	c.mu.Unlock()
	clear(streams)
	c.woken.mu.Lock()
	defer c.woken.mu.Unlock()
	c.woken.spare = streams[:0]
	if len(c.woken.streams) > 0 {
		c.s.turns.add(c)
		return
	}
	c.woken.queued = false
}
