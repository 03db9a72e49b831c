package conn

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"sync"
)

// Hijacked tracks the connections that handlers have taken over (WebSockets). net/http forgets them, but Shutdown waits
// for them. The zero value is ready to use.
type Hijacked struct {
	mu    sync.Mutex
	count int // number of handlers; a handler about to get its connection is not in conns yet
	conns map[net.Conn]bool
	empty chan struct{} // closed when count returns to 0; nil if no caller waits
}

// Take lets a handler take over the connection of its request. If there is no error, the handler must call End when it
// returns.
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

// wait waits until count is 0, or returns ctx's error.
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
