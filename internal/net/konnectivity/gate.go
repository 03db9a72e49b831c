package konnectivity

import (
	"container/list"
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

const (
	// HandshakeTimeout is the time limit of a peer for TLS and the preface of HTTP/2.
	HandshakeTimeout = 15 * time.Second
	// maxStrangers bounds the connections of peers that have not yet proved to be an agent or an API server. One more
	// closes the oldest of them, so that stalled connections do not lock others out.
	maxStrangers = 1024
)

// Gate is a listener that tracks its connections until they are closed.
type Gate struct {
	net.Listener
	most int // known connections

	mu struct {
		sync.Mutex
		strangers list.List // of *Conn, the oldest first
		conns     map[*Conn]struct{}
		closed    bool
	}
}

// NewGate returns a gate in front of a listener, with at most the given number of connections of known peers.
func NewGate(l net.Listener, most int) *Gate {
	g := &Gate{Listener: l, most: most}
	g.mu.conns = map[*Conn]struct{}{}
	return g
}

// Accept implements net.Listener.
func (g *Gate) Accept() (net.Conn, error) {
	raw, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: raw, gate: g}
	var oldest *Conn
	g.mu.Lock()
	if g.mu.closed {
		g.mu.Unlock()
		_ = raw.Close()
		return nil, net.ErrClosed
	}
	if g.mu.strangers.Len() >= maxStrangers {
		oldest = g.mu.strangers.Front().Value.(*Conn)
	}
	c.element = g.mu.strangers.PushBack(c)
	g.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	return c, nil
}

// CloseAll closes the listener and all connections, including handshakes, for which a gRPC server waits.
func (g *Gate) CloseAll() {
	_ = g.Close()
	g.mu.Lock()
	g.mu.closed = true
	var all []*Conn
	for e := g.mu.strangers.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*Conn))
	}
	for c := range g.mu.conns {
		all = append(all, c)
	}
	g.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}

// Connections returns the number of connections of strangers, and of known peers.
func (g *Gate) Connections() (strangers, known int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.strangers.Len(), len(g.mu.conns)
}

// Conn is a connection of a Gate.
type Conn struct {
	net.Conn
	gate *Gate
	// element is in the list of strangers; nil once the peer is known or the connection closed. Gate.mu guards it.
	element *list.Element
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.gate.mu.Lock()
	if c.element != nil {
		c.gate.mu.strangers.Remove(c.element)
		c.element = nil
	}
	delete(c.gate.mu.conns, c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

// Know records that the peer has proved to be an agent or an API server. It returns false if there are too many.
func (c *Conn) Know() bool {
	if c == nil {
		return true
	}
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	if c.element == nil {
		return true
	}
	if len(c.gate.mu.conns) >= c.gate.most {
		return false
	}
	c.gate.mu.strangers.Remove(c.element)
	c.element = nil
	c.gate.mu.conns[c] = struct{}{}
	return true
}

// Drop closes the connection. A nil Conn, of a caller without a Gate, has none.
func (c *Conn) Drop() {
	if c != nil {
		_ = c.Close()
	}
}

// Handshake returns credentials that do the handshake of inner and have PeerOf find the connection of a call.
func Handshake(inner credentials.TransportCredentials) credentials.TransportCredentials {
	return &handshake{inner}
}

type handshake struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (h *handshake) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	if c, ok := raw.(*Conn); ok {
		info = &authInfo{AuthInfo: info, conn: c}
	}
	return conn, info, nil
}

// Clone implements credentials.TransportCredentials.
func (h *handshake) Clone() credentials.TransportCredentials {
	return &handshake{h.TransportCredentials.Clone()}
}

type authInfo struct {
	credentials.AuthInfo
	conn *Conn
}

// PeerOf returns the connection of a gRPC call, nil if it did not come through a Gate.
func PeerOf(ctx context.Context) *Conn {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(*authInfo); ok {
			return info.conn
		}
	}
	return nil
}
