package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// Streams are the client's ends of a simulated command. Streams that the client has not requested discard their data.
type Streams struct {
	Stdout, Stderr io.Writer
	// TTY is true if the client has requested a terminal: there is only Stdout then.
	TTY bool
}

// Process is a simulated command: it writes its output, and returns its exit code or the error of a kubelet. It ends
// with ctx.
type Process func(ctx context.Context, to Streams) (exitCode int, err error)

// simulatedHost is the host name of the kubelet of simulated nodes. It is no host: its connections are pipes within
// this process.
const simulatedHost = "simulated.invalid"

// simulatedKubelet answers for exec and attach as a kubelet does, over pipes within this process, so that clients get
// the same translations and upgrades as with a real one.
type simulatedKubelet struct {
	run     Process
	streams proxy.Options
}

// serveSimulated answers an exec or attach with a simulated process.
func (y *connector) serveSimulated(
	w http.ResponseWriter, r *http.Request, request streamRequest, run Process,
) error {
	where := &url.URL{Scheme: "http", Host: simulatedHost, RawQuery: request.query().Encode(), Path: "/"}
	y.within(w, r, &simulatedKubelet{run, request.streams}, func(transport *http.Transport) http.Handler {
		handler := http.Handler(y.upgrader(where, transport, true))
		if !y.settings.Translate {
			return handler
		}
		translator := proxy.NewStreamTranslatorHandler(where, transport, y.settings.BytesPerSecond, request.streams)
		return proxy.NewTranslatingHandler(handler, translator, wsstream.IsWebSocketRequestWithStreamCloseProtocol)
	})
	return nil
}

// within passes a request on to kubelet, a handler in this process, by the handler that passing returns for a transport
// to it. It returns when both have ended.
func (y *connector) within(
	w http.ResponseWriter, r *http.Request, kubelet http.Handler, passing func(*http.Transport) http.Handler,
) {
	w, r, cancel := leaving(w, r)
	defer cancel()
	var served sync.WaitGroup
	defer served.Wait()
	defer cancel() // before the wait: it ends the connection
	passing(&http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		context.AfterFunc(r.Context(), func() { client.Close() })
		served.Go(func() { serveOne(r.Context(), server, kubelet) })
		return client, nil
	}}).ServeHTTP(w, r)
}

// serveOne answers the one request of a connection, and returns when the connection is closed.
func serveOne(ctx context.Context, conn net.Conn, handler http.Handler) {
	listener := &pipeListener{conns: make(chan net.Conn, 1), closed: make(chan struct{})} // the one connection
	listener.conns <- conn
	var once sync.Once
	end := func() { once.Do(func() { close(listener.closed) }) }
	done := make(chan struct{})
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    1 << 20, // Go's default, and that of the server in front
		BaseContext:       func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(done)
			handler.ServeHTTP(w, r)
		}),
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	select {
	case <-done:
	case <-ctx.Done():
	}
	end()
	conn.Close()
	_ = server.Close()
	serving.Wait()
}

// pipeListener has one connection.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

// Accept implements net.Listener.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (*pipeListener) Close() error { return nil }

// Addr implements net.Listener.
func (*pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: simulatedHost, Net: "pipe"} }

// ServeHTTP runs the process on the client's streams.
func (k *simulatedKubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c *streamConn
	var err error
	if wsstream.IsWebSocketRequest(r) {
		c, err = webSocketStreams(w, r, k.streams)
	} else {
		c, err = spdyStreams(w, r, k.streams)
	}
	if err != nil {
		return // the client has the error
	}
	defer c.close()
	code, err := k.run(r.Context(), Streams{Stdout: c.stdout, Stderr: c.stderr, TTY: k.streams.Tty})
	c.status(result(code, err))
}

// result returns the status of a command, as a kubelet reports it.
func result(code int, err error) *metav1.Status {
	switch {
	case err != nil:
		return &metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError,
			Code:    http.StatusInternalServerError,
			Message: fmt.Sprintf("Internal error occurred: %v", err),
		}
	case code != 0:
		return &metav1.Status{
			Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(code)},
			}},
			Message: fmt.Sprintf("command terminated with non-zero exit code: %d", code),
		}
	}
	return &metav1.Status{Status: metav1.StatusSuccess}
}

// streamConn is the client's connection.
type streamConn struct {
	io.Closer
	stdout, stderr io.Writer
	errors         io.WriteCloser
	// plain is true for clients of old protocols, which get errors as text and no status of success.
	plain bool
}

// status sends the result.
func (c *streamConn) status(s *metav1.Status) {
	text := []byte(s.Message)
	if !c.plain {
		var err error
		if text, err = json.Marshal(s); err != nil {
			panic(err) // strings and numbers only
		}
	}
	if len(text) > 0 {
		_, _ = c.errors.Write(text)
	}
}

// close ends the connection once the client has all data.
func (c *streamConn) close() {
	for _, one := range []any{c.stdout, c.stderr, c.errors} {
		if stream, ok := one.(io.Closer); ok {
			_ = stream.Close()
		}
	}
	_ = c.Closer.Close()
}

// asText reports whether a protocol sends errors as text.
func asText(protocol string) bool {
	return !strings.HasPrefix(protocol, "v4.") && !strings.HasPrefix(protocol, "v5.")
}

var errStreams = errors.New("the client has not opened all streams in time")
