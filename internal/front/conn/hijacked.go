package conn

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"sync"
)

// Hijacked are the connections that handlers have taken over (WebSockets), which net/http forgets: Shutdown waits for
// them too. The zero value has none.
type Hijacked struct {
	mu    sync.Mutex
	count int // of handlers; one that is about to get its connection has none among conns yet
	conns map[net.Conn]bool
	empty chan struct{} // closed when count is 0 again; nil if no caller waits
}

// Take has a handler take over the connection of its request. Without an error, End must be called when the handler
// has returned.
func (t *Hijacked) Take(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
	t.begin() // before net/http forgets it
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.End(nil)
		return nil, nil, err
	}
	t.hold(conn)
	return conn, rw, nil
}

func (t *Hijacked) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count++
}

func (t *Hijacked) hold(conn net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns == nil {
		t.conns = map[net.Conn]bool{}
	}
	t.conns[conn] = true
}

// End is called when a handler has returned. conn is the connection that it took over.
func (t *Hijacked) End(conn net.Conn) {
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
func (t *Hijacked) wait(ctx context.Context) error {
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
func (t *Hijacked) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for conn := range t.conns {
		_ = conn.Close()
	}
}
