package conn

import (
	"net"
	"net/http"
	"sync"
)

// freshConns tracks connections without a request so far, such as spare ones that clients open ahead. During shutdown
// net/http waits five seconds for the first request of each; freshConns ends them at once.
type freshConns struct {
	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
}

// follow is an http.Server's ConnState.
func (u *freshConns) follow(conn net.Conn, state http.ConnState) {
	if _, gathers := conn.(*gatherer); gathers {
		return // each request of the connection calls this
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(u.conns, conn)
	case u.closed:
		_ = conn.Close()
	default:
		if u.conns == nil {
			u.conns = map[net.Conn]bool{}
		}
		u.conns[conn] = true
	}
}

// forget drops a connection that has become HTTP/2, for which net/http reports no further states.
func (u *freshConns) forget(conn net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.conns, conn)
}

// close closes all current and future connections.
func (u *freshConns) close() {
	u.mu.Lock()
	conns := u.conns
	u.conns, u.closed = nil, true
	u.mu.Unlock()
	for conn := range conns {
		_ = conn.Close()
	}
}
