package conn

import (
	"net"
	"net/http"
	"sync"
)

// unasked are the connections on which no request has come yet, such as spare ones that clients open ahead. net/http
// lets each have five seconds for its first request even while it shuts down; here they end at once.
type unasked struct {
	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
}

// follow is an http.Server's ConnState.
func (u *unasked) follow(conn net.Conn, state http.ConnState) {
	if _, asked := conn.(*gatherer); asked {
		return // each of its requests comes by here
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

// forget is for a connection that has become one of HTTP/2, of which net/http says no more.
func (u *unasked) forget(conn net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.conns, conn)
}

// close ends all that are there, and those that come.
func (u *unasked) close() {
	u.mu.Lock()
	conns := u.conns
	u.conns, u.closed = nil, true
	u.mu.Unlock()
	for conn := range conns {
		_ = conn.Close()
	}
}
