package podport

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// idleMost is how long the server of fixed responses keeps a connection without a request, and headMost how long a
// client has for the head of a request. respondMost bounds one exchange.
const (
	idleMost    = 2 * time.Minute
	headMost    = time.Minute
	respondMost = 2 * time.Minute
)

// server answers the requests to ports with fixed responses, over pipes within this process. It is the listener of its
// own http.Server.
type server struct {
	ports  *Ports
	conns  chan net.Conn
	closed chan struct{}
	once   struct{ start, close sync.Once }
	http   *http.Server
	ended  sync.WaitGroup
}

// conn is a connection to a port of a pod.
type conn struct {
	net.Conn
	pod types.NamespacedName
	uid types.UID
	to  netip.AddrPort
}

// RemoteAddr returns the address of the pod for the client of the connection.
func (c *conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.to) }

// connKey is the key of the conn in the context of a request.
type connKey struct{}

func newServer(p *Ports) *server {
	s := &server{ports: p, conns: make(chan net.Conn), closed: make(chan struct{})}
	s.http = &http.Server{
		Handler: s, ReadHeaderTimeout: headMost, IdleTimeout: idleMost,
		ReadTimeout: respondMost, WriteTimeout: respondMost,
		MaxHeaderBytes: 1 << 20, // Go's default, and that of the server in front
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	return s
}

// dial opens a connection to a port of a pod.
func (s *server) dial(ctx context.Context, pod *corev1.Pod, to netip.AddrPort) (net.Conn, error) {
	s.once.start.Do(func() { s.ended.Go(func() { _ = s.http.Serve(s) }) })
	client, own := net.Pipe()
	about := conn{pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, uid: pod.UID, to: to}
	theirs, ours := about, about
	theirs.Conn, ours.Conn = client, own
	select {
	case s.conns <- &ours:
		return &theirs, nil
	case <-s.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ServeHTTP answers from the pod's present annotation.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(connKey{}).(*conn)
	pod := cluster.Pods.Get(s.ports.cluster, c.pod.Namespace, c.pod.Name)
	if pod == nil || pod.UID != c.uid || pod.Status.Phase != corev1.PodRunning {
		panic(http.ErrAbortHandler) // the connection ends with the pod
	}
	stands, err := s.ports.of(pod, int(c.to.Port()))
	if err != nil || stands == nil || stands.Local != 0 {
		panic(http.ErrAbortHandler) // the next connection has the new state
	}
	found := stands.find(r.Method, r.URL.Path)
	if found == nil {
		http.Error(w, fmt.Sprintf("%s %s is not among the simulated responses of port %d (annotation %s of pod %s)",
			r.Method, r.URL.Path, c.to.Port(), annotation, pod.Name), http.StatusNotFound)
		return
	}
	if found.ContentType != "" {
		w.Header().Set("Content-Type", found.ContentType)
	}
	if found.Status != 0 {
		w.WriteHeader(found.Status)
	}
	_, _ = io.WriteString(w, found.Body)
}

// Accept implements net.Listener.
func (s *server) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (s *server) Close() error {
	s.once.close.Do(func() { close(s.closed) })
	return nil
}

// Addr implements net.Listener.
func (*server) Addr() net.Addr { return &net.UnixAddr{Name: "simulated", Net: "pipe"} }

// close ends all connections.
func (s *server) close() {
	_ = s.Close()
	_ = s.http.Close()
	s.once.start.Do(func() {}) // dial starts nothing any more
	s.ended.Wait()
}
