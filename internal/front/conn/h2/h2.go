// Package h2 serves HTTP/2 connections (RFC 9113) to an http.Handler.
//
// It replaces the server of golang.org/x/net/http2, whose frames pass through three goroutines: the handler's, the
// connection's and one for each write. Here a goroutine that has something to send frames it, encrypts it and sends it
// itself, in one system call; frames of other goroutines that arrive meanwhile go out together
// ([docs/design/http2.md]). The socket never blocks a handler: a goroutine finishes the write if the client does not
// read.
//
// A handler may hand the rest of its response over (package handover): then a few goroutines serve the streams of all
// connections in turns, and an idle stream has neither a goroutine nor a timer.
//
// Main types: Server, and conn, stream, response and body, one of each for a connection or request; carried, turns and
// alarms for streams that were handed over. A conn's mutex guards all state of its streams. It is locked before the
// mutexes of woken, turns and alarms. Frames are parsed by x/net's Framer, headers by its hpack.
package h2

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of the protocol. They are part of the settings that the server sends, or bound the memory that a client can
// make it hold.
const (
	// frameSize bounds the payload of a sent frame. RFC 9113 allows every client to receive this size.
	frameSize = 16 << 10
	// tableSize bounds the tables of hpack, in bytes.
	tableSize = 4096
	// controlMost bounds the bytes of responses to control frames (SETTINGS, PING, refused streams) that wait for a
	// client that does not read.
	controlMost = 64 << 10
	// tick is the period of the connection's clock.
	tick = 15 * time.Second
	// prefaceWait limits the time for the client's preface and settings.
	prefaceWait = 10 * time.Second
)

// Config configures a Server. Fields without a comment are required.
type Config struct {
	// MaxStreams bounds the requests of a connection that run at the same time.
	MaxStreams int
	// MaxHeaderBytes bounds the header of a request; a larger one is a 431.
	MaxHeaderBytes int
	// MaxReadFrame bounds the payload of a received frame.
	MaxReadFrame int
	// StreamWindow and ConnWindow bound the bytes of bodies that handlers have not read, by stream and by connection.
	StreamWindow, ConnWindow int
	// Idle closes a connection without requests after this time. Quiet sends a PING after this time without
	// frames, and Lost closes the connection after this further time without frames. All are multiples of 15 s.
	Idle, Quiet, Lost time.Duration
	// Leave limits the time for a client to read and disconnect after the last response; the server closes then.
	Leave time.Duration

	// Sending is called before responses, or parts of them, are sent.
	Sending func()
	// Failed is called with the value of a panic of a handler, other than http.ErrAbortHandler.
	Failed func(r *http.Request, value any)
}

// headerList returns MaxHeaderBytes as HTTP/2 counts them: with 32 bytes for each of some ten fields.
func (c *Config) headerList() uint32 { return uint32(c.MaxHeaderBytes) + 10*32 }

// A Socket is a connection below TLS that holds back writes. TLS writes to it at any time; only one goroutine sends.
type Socket interface {
	net.Conn
	// Hold holds back all writes from now on.
	Hold()
	// TrySend sends held bytes as far as that is possible without waiting. It reports whether none are left.
	TrySend() (sent bool, err error)
	// Send sends all held bytes.
	Send() error
}

// Server serves connections. It is safe for concurrent use.
type Server struct {
	config Config
	date   dateCache
	turns  turns
	alarms alarms

	mu     sync.Mutex
	conns  map[*conn]struct{}
	ending bool
}

// New returns a Server.
func New(c Config) *Server { return &Server{config: c, conns: map[*conn]struct{}{}} }

// Shutdown tells all clients to open no more streams. A connection ends after its last response.
func (s *Server) Shutdown() {
	s.mu.Lock()
	s.ending = true
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		c.leave()
	}
}

func (s *Server) add(c *conn) {
	s.mu.Lock()
	s.conns[c] = struct{}{}
	ending := s.ending
	s.mu.Unlock()
	if ending {
		c.leave()
	}
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}
