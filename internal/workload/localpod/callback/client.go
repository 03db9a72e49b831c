package callback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Dial sends an upgrade with client, and returns the connection and the headers of the response. An error for a
// response of the server that is not the upgrade is a *Refused. The client must use HTTP/1.1.
func Dial(client *http.Client, r *http.Request) (net.Conn, http.Header, error) {
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", Protocol)
	response, err := client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		return nil, nil, &Refused{response}
	}
	stream, ok := response.Body.(io.ReadWriteCloser)
	if !ok || response.Header.Get("Upgrade") != Protocol {
		response.Body.Close()
		return nil, nil, errors.New("the server has switched to another protocol than " + Protocol)
	}
	return &upgraded{ReadWriteCloser: stream}, response.Header, nil
}

// Refused is a response in place of the upgrade. The caller closes its body.
type Refused struct{ Response *http.Response }

// Error implements error.
func (r *Refused) Error() string { return "the server refuses: " + r.Response.Status }

// upgraded is the connection of an upgraded response. It has no deadlines: pings detect its end.
type upgraded struct{ io.ReadWriteCloser }

// LocalAddr implements net.Conn.
func (*upgraded) LocalAddr() net.Addr { return address{} }

// RemoteAddr implements net.Conn.
func (*upgraded) RemoteAddr() net.Addr { return address{} }

// SetDeadline implements net.Conn.
func (*upgraded) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (*upgraded) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (*upgraded) SetWriteDeadline(time.Time) error { return nil }

// Serve serves the pages that pages has, and the connections to ports, until the connection or ctx ends.
func Serve(ctx context.Context, conn net.Conn, ports Ports, pages http.Handler) {
	mux := http.NewServeMux()
	mux.Handle("POST "+connectPath, ports)
	mux.Handle("/", pages)
	listener := &single{conns: make(chan net.Conn, 1), ended: make(chan struct{})} // the one connection
	listener.conns <- &watched{Conn: conn, lost: listener.end}
	server := &http.Server{
		Handler: mux, Protocols: new(http.Protocols), ReadHeaderTimeout: time.Minute, MaxHeaderBytes: maxHeader,
		IdleTimeout: idleMost,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: pingAfter, PingTimeout: pingWait, MaxConcurrentStreams: maxConnections,
		},
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	server.Protocols.SetUnencryptedHTTP2(true)
	defer context.AfterFunc(ctx, listener.end)()
	_ = server.Serve(listener) // net.ErrClosed, from Accept
	conn.Close()
	_ = server.Close()
}

// single is a listener with one connection.
type single struct {
	conns chan net.Conn
	once  sync.Once
	ended chan struct{}
}

func (s *single) end() { s.once.Do(func() { close(s.ended) }) }

// Accept implements net.Listener. Its second call waits for the end of the connection.
func (s *single) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (s *single) Close() error { s.end(); return nil }

// Addr implements net.Listener.
func (*single) Addr() net.Addr { return address{} }

// Ports are the ports that a server may reach, and the ports of this machine that stand for them. Connections go to
// 127.0.0.1 alone.
type Ports map[int]int

// ServeHTTP connects a request with a port.
func (p Ports) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	number, err := strconv.Atoi(r.URL.Query().Get(portParameter))
	own, allowed := p[number]
	if err != nil || !allowed {
		http.Error(w, fmt.Sprintf("port %.10q is not one of the program's", r.URL.Query().Get(portParameter)),
			http.StatusForbidden)
		return
	}
	to, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(own)))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer to.Close()
	defer context.AfterFunc(r.Context(), func() { to.Close() })()
	control := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	if control.Flush() != nil {
		return
	}
	var sent sync.WaitGroup
	sent.Go(func() {
		_, _ = io.Copy(to, r.Body)
		_ = to.(*net.TCPConn).CloseWrite()
	})
	_, _ = io.Copy(flusher{w, control}, to)
	to.Close()
	r.Body.Close() // ends the other copy
	sent.Wait()
}

// flusher sends each piece at once.
type flusher struct {
	io.Writer
	control *http.ResponseController
}

// Write implements io.Writer.
func (f flusher) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err == nil {
		err = f.control.Flush()
	}
	return n, err
}
