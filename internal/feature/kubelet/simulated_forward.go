package kubelet

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

const (
	// forwardProtocol is the version of the protocol for ports.
	forwardProtocol = "portforward.k8s.io"
	// maxForwards bounds the connections that a client has open to the ports of a pod at the same time.
	maxForwards = 1000
)

// simulatedForward answers for port-forward as a kubelet does: it opens a connection for each pair of a client's
// streams.
type simulatedForward struct {
	pod  *corev1.Pod
	dial dialPort
}

// dialPort opens a connection to a port of a pod.
type dialPort func(ctx context.Context, pod *corev1.Pod, port int) (net.Conn, error)

// forwardInside connects a client to the ports of a pod without a kubelet: a simulated or a local one.
func (y *connector) forwardInside(w http.ResponseWriter, r *http.Request, pod *corev1.Pod, dial dialPort) error {
	where := &url.URL{Scheme: "http", Host: simulatedHost, Path: "/"}
	kubelet := &simulatedForward{pod, dial}
	y.within(w, r, kubelet, func(transport *http.Transport) http.Handler {
		handler := http.Handler(y.upgrader(where, transport, true))
		if !y.settings.Tunnel {
			return handler
		}
		return proxy.NewTranslatingHandler(handler, proxy.NewTunnelingHandler(handler),
			wsstream.IsWebSocketRequestWithTunnelingProtocol)
	})
	return nil
}

// ServeHTTP serves the streams of one client until it leaves.
func (f *simulatedForward) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if wsstream.IsWebSocketRequest(r) {
		http.Error(w, "ports of pods without a kubelet are forwarded by SPDY, or by SPDY in a WebSocket", http.StatusBadRequest)
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{forwardProtocol}); err != nil {
		return // the client has the error
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	pairs := &forwardPairs{waiting: map[string]*forwardPair{}, forward: f, ctx: ctx, known: make(chan struct{})}
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, pairs.take)
	if conn == nil {
		return // the client has the error
	}
	pairs.conn = conn
	close(pairs.known)
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	conn.SetIdleTimeout(idleMost)
	<-conn.CloseChan()
	cancel()
	pairs.end()
}

// forwardPairs are the pairs of streams of one client: a stream for data and one for errors with the same identifier.
type forwardPairs struct {
	forward *simulatedForward
	ctx     context.Context // the client's
	conn    httpstream.Connection
	known   chan struct{} // closed when conn is set

	mu      sync.Mutex
	waiting map[string]*forwardPair
	open    int
	over    bool
	running sync.WaitGroup
}

// forwardPair is a pair of streams for one connection to a port.
type forwardPair struct {
	port         int
	data, errors httpstream.Stream
	late         *time.Timer // closes a pair that stays incomplete
}

// take assigns a client's stream to its pair, and begins to forward when the pair is complete.
func (p *forwardPairs) take(s httpstream.Stream, _ <-chan struct{}) error {
	port, err := strconv.ParseUint(s.Headers().Get(corev1.PortHeader), 10, 16)
	if err != nil || port == 0 {
		return fmt.Errorf("unable to parse %q as a port", s.Headers().Get(corev1.PortHeader))
	}
	id := requestOf(s)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return net.ErrClosed
	}
	pair := p.waiting[id]
	if pair == nil {
		if p.open >= maxForwards {
			return fmt.Errorf("a client has at most %d open connections", maxForwards)
		}
		pair = &forwardPair{port: int(port)}
		pair.late = time.AfterFunc(streamsWithin, func() { p.drop(id, pair) })
		p.waiting[id] = pair
		p.open++
	}
	switch s.Headers().Get(corev1.StreamType) {
	case corev1.StreamTypeError:
		if pair.errors != nil {
			return fmt.Errorf("request %s has two error streams", id)
		}
		pair.errors = s
	case corev1.StreamTypeData:
		if pair.data != nil {
			return fmt.Errorf("request %s has two data streams", id)
		}
		pair.data = s
	default:
		return fmt.Errorf("unexpected stream %q", s.Headers().Get(corev1.StreamType))
	}
	if pair.data == nil || pair.errors == nil || !pair.late.Stop() {
		return nil
	}
	delete(p.waiting, id)
	p.running.Go(func() { p.run(pair) })
	return nil
}

// requestOf returns the identifier of a stream's request. Old clients send none: they open the stream for errors first
// and the stream for data next, with odd numbers.
func requestOf(s httpstream.Stream) string {
	if id := s.Headers().Get(corev1.PortForwardRequestIDHeader); id != "" {
		return id
	}
	number := int64(s.Identifier())
	if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
		number -= 2
	}
	return strconv.FormatInt(number, 10)
}

// drop gives up on a pair that is not complete in time.
func (p *forwardPairs) drop(id string, pair *forwardPair) {
	<-p.known
	p.mu.Lock()
	late := p.waiting[id] == pair && !p.over
	if late {
		delete(p.waiting, id)
		p.open--
	}
	p.mu.Unlock()
	if !late {
		return
	}
	for _, s := range []httpstream.Stream{pair.data, pair.errors} {
		if s != nil {
			_ = s.Reset()
			p.conn.RemoveStreams(s)
		}
	}
}

// end waits for all connections. The client has left.
func (p *forwardPairs) end() {
	p.mu.Lock()
	p.over = true
	for _, pair := range p.waiting {
		pair.late.Stop()
	}
	p.mu.Unlock()
	p.running.Wait()
}

// run forwards a pair's data. The client reads an error from the other stream.
func (p *forwardPairs) run(pair *forwardPair) {
	defer func() {
		<-p.known
		p.conn.RemoveStreams(pair.data, pair.errors)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open--
	}()
	defer pair.errors.Close()
	defer pair.data.Close()
	pod := p.forward.pod
	to, err := p.forward.dial(p.ctx, pod, pair.port)
	if err != nil {
		fmt.Fprintf(pair.errors, "error forwarding port %d to pod %s, uid %s: %v", pair.port, pod.Name, pod.UID, err)
		_ = pair.data.Reset()
		return
	}
	stop := context.AfterFunc(p.ctx, func() { to.Close() })
	defer stop()
	defer to.Close()
	var sent sync.WaitGroup
	sent.Go(func() {
		_, _ = io.Copy(to, pair.data)
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	})
	_, _ = io.Copy(pair.data, to)
	_ = pair.data.Close() // the client reads the end
	to.Close()            // no more of its data is wanted
	_ = pair.data.Reset()
	sent.Wait()
}
