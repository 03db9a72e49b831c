// Package callback lets a server open connections to a client over a connection that the client has opened.
//
// The client upgrades an HTTP/1.1 request (Dial), and then serves HTTP/2 requests that arrive over the connection
// (Serve). The server holds a Link (Upgrade): Link.Dial opens a connection to a port behind the client, as one request
// with a streamed body in each direction, and Link.Get reads a page of the client. Everything ends with the connection,
// which both ends check with pings. The client decides which ports exist (Ports).
//
// A Link is safe for concurrent use. It has no goroutines besides net/http's.
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

	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

// Protocol is the value of the header Upgrade.
const Protocol = "bowsprit-callback-v1"

const (
	// pingAfter is the time without data after which an end sends a ping, and pingWait the time for the response.
	pingAfter = 10 * time.Second
	pingWait  = 10 * time.Second
	// maxConnections bounds the connections and pages that a link has open at the same time.
	maxConnections = 1000
	// connectPath is the path of requests that open a connection, and portParameter their port.
	connectPath   = "/connect"
	portParameter = "port"
	// maxHeader bounds the headers of a request, and idleMost ends a connection without requests: a server has at least
	// one open, which reads the state.
	maxHeader = 64 << 10
	idleMost  = time.Minute
	// maxRefusal bounds the text of a client's refusal.
	maxRefusal = 1024
)

// ErrGone is the error of a use of a link after its end.
var ErrGone = errors.New("the connection to the client has ended")

// Link is the server's end.
type Link struct {
	conn      net.Conn
	transport *http.Transport
	once      sync.Once
	done      chan struct{}
}

// Upgrade takes over the connection of a request with the header of Protocol, and answers it with the given headers. An
// error has no response yet.
func Upgrade(w http.ResponseWriter, headers http.Header) (*Link, error) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	headers = headers.Clone()
	headers.Set("Connection", "Upgrade")
	headers.Set("Upgrade", Protocol)
	_ = conn.SetDeadline(time.Time{}) // net/http's own
	_, _ = buffered.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = headers.Write(buffered)
	_, _ = buffered.WriteString("\r\n")
	if err := buffered.Flush(); err != nil { // also the error of an earlier write
		conn.Close()
		return nil, err
	}
	return open(&hijacked{Conn: conn, from: buffered.Reader}), nil
}

// hijacked is a connection with data that net/http has read already.
type hijacked struct {
	net.Conn
	from io.Reader // reads on from the connection
}

// Read implements net.Conn.
func (h *hijacked) Read(p []byte) (int, error) { return h.from.Read(p) }

func open(conn net.Conn) *Link {
	l := &Link{done: make(chan struct{})}
	l.conn = &watched{Conn: conn, lost: l.Close}
	given := make(chan net.Conn, 1) // the one connection
	given <- l.conn
	l.transport = &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case c := <-given:
				return c, nil
			default: // it has ended, or has too many streams
				return nil, ErrGone
			}
		},
		Protocols:              new(http.Protocols),
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingWait},
		MaxResponseHeaderBytes: foreign.MaxHeader,
	}
	l.transport.Protocols.SetUnencryptedHTTP2(true)
	return l
}

// watched is a connection that reports its end.
type watched struct {
	net.Conn
	lost func()
}

// Read implements net.Conn.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if err != nil {
		w.lost()
	}
	return n, err
}

// Close implements net.Conn. The transport calls it after a ping without a response.
func (w *watched) Close() error {
	err := w.Conn.Close()
	w.lost()
	return err
}

// Done is closed when the link has ended.
func (l *Link) Done() <-chan struct{} { return l.done }

// Close ends the link with all its connections.
func (l *Link) Close() {
	l.once.Do(func() {
		close(l.done)
		l.conn.(*watched).Conn.Close()
	})
}

// Get reads a page of the client. It ends with ctx.
func (l *Link) Get(ctx context.Context, path string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://client"+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := l.send(r)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// send returns the client's response if it is a success.
func (l *Link) send(r *http.Request) (*http.Response, error) {
	response, err := l.transport.RoundTrip(r)
	if err != nil {
		select {
		case <-l.done:
			return nil, ErrGone
		default:
			return nil, err
		}
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // the status remains
	return nil, fmt.Errorf("the client refuses: %s: %s", response.Status, foreign.Text(string(text)))
}

// Dial opens a connection to a port. When ctx ends the attempt is aborted; an established connection stays.
func (l *Link) Dial(ctx context.Context, port int) (net.Conn, error) {
	reader, writer := io.Pipe()
	own, cancel := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, cancel)
	r, err := http.NewRequestWithContext(own, http.MethodPost,
		"http://client"+connectPath+"?"+portParameter+"="+strconv.Itoa(port), reader)
	if err != nil {
		cancel()
		return nil, err
	}
	response, err := l.send(r)
	if !stop() && err == nil {
		response.Body.Close()
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		reader.Close()
		return nil, err
	}
	return newConn(response.Body, writer, cancel), nil
}
