package front

import (
	"context"
	"net"
	"sync"
)

// hijacked are the connections that handlers have taken over (WebSockets), which net/http forgets: Shutdown waits for
// them too.
type hijacked struct {
	mu    sync.Mutex
	count int // of handlers; one that is about to get its connection has none among conns yet
	conns map[net.Conn]bool
	empty chan struct{} // closed when count is 0 again; nil if no caller waits
}

func (t *hijacked) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count++
}

func (t *hijacked) hold(conn net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns == nil {
		t.conns = map[net.Conn]bool{}
	}
	t.conns[conn] = true
}

// end is called when a handler has returned, or has not got its connection, which is nil then.
func (t *hijacked) end(conn net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, conn)
	t.count--
	if t.count == 0 && t.empty != nil {
		close(t.empty)
		t.empty = nil
	}
}

// wait returns when there are none, or ctx's error.
func (t *hijacked) wait(ctx context.Context) error {
	t.mu.Lock()
	if t.count == 0 {
		t.mu.Unlock()
		return nil
	}
	empty := make(chan struct{})
	t.empty = empty
	t.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close ends all connections. Their handlers notice that.
func (t *hijacked) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for conn := range t.conns {
		_ = conn.Close()
	}
}
