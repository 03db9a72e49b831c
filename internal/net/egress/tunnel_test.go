package egress

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// through opens an Egress with a cluster behind a Konnectivity server.
func through(t *testing.T, socket string) *Egress {
	t.Helper()
	c, err := decode([]byte(`{"apiVersion":"apiserver.k8s.io/v1beta1","kind":"EgressSelectorConfiguration",
		"egressSelections":[{"name":"cluster","connection":{"proxyProtocol":"GRPC","transport":{"uds":{"udsName":"` +
		socket + `"}}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// TestTunnel sends much data both ways over many concurrent connections, which share one to the Konnectivity server.
func TestTunnel(t *testing.T) {
	t.Parallel()
	k, address := startKonnectivity(t, false), echo(t)
	e := through(t, k.socket)
	if !e.Tunnelled(Cluster) || e.Tunnelled(ControlPlane) || e.Selected(ControlPlane) != nil {
		t.Error("the configuration is about the cluster alone")
	}
	const connections = 20
	data := make([]byte, 300_000)
	_, _ = rand.Read(data)
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() {
			conn, err := e.Dial(Cluster)(t.Context(), "tcp", address)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			go func() { _, _ = conn.Write(data) }()
			got := make([]byte, len(data))
			if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%v, or other bytes came back", err)
			}
			if conn.RemoteAddr().String() != address || conn.LocalAddr().String() != k.socket {
				t.Errorf("from %s to %s", conn.LocalAddr(), conn.RemoteAddr())
			}
		})
	}
	wg.Wait()
	for range connections {
		<-k.closed
	}
	if n := k.listener.n.Load(); n != 1 {
		t.Errorf("%d connections to the Konnectivity server", n)
	}
}

// TestTunnelClose checks that data written before Close arrives, and that everything else ends.
func TestTunnelClose(t *testing.T) {
	t.Parallel()
	k := startKonnectivity(t, false)
	e := through(t, k.socket)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := e.Dial(Cluster)(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		read <- err
	}()
	data := bytes.Repeat([]byte("last words "), 5000)
	if _, err := conn.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(far); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes of %d, %v", len(got), len(data), err)
	}
	if err := <-read; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a Read under way: %v", err)
	}
	if _, err := conn.Write(data); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a Write afterwards: %v", err)
	}
}

// TestTunnelDeadlines checks that reads and writes end at deadlines that are set before, later, or removed.
func TestTunnelDeadlines(t *testing.T) {
	t.Parallel()
	k := startKonnectivity(t, false)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // data sent there is not read
	conn, err := through(t, k.socket).Dial(Cluster)(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Unix(1, 0))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read after the deadline: %v", err)
	}
	if _, err := conn.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write after the deadline: %v", err)
	}
	_ = conn.SetDeadline(time.Now().Add(time.Hour))
	_ = conn.SetDeadline(time.Time{})
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Errorf("write when there is none any more: %v", err)
	}
	read := make(chan error)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		read <- err
	}()
	_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read until the deadline: %v", err)
	}
	_ = conn.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	for err = nil; err == nil; { // until all buffers are full
		_, err = conn.Write(make([]byte, 1<<20))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write until the deadline: %v", err)
	}
}

// TestTunnelErrors checks that errors contain the agent's text, or the fate of the server.
func TestTunnelErrors(t *testing.T) {
	t.Parallel()
	k := startKonnectivity(t, false)
	dial := through(t, k.socket).Dial(Cluster)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	_, err = dial(t.Context(), "tcp", listener.Addr().String())
	if err == nil || !strings.HasSuffix(err.Error(), "connect: connection refused") {
		t.Errorf("nothing listens there: %v", err)
	}
	address := echo(t)
	conn, err := dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	k.server.Stop()
	if _, err := conn.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "Konnectivity server broke") {
		t.Errorf("read when the server is gone: %v", err)
	}
	if _, err := conn.Write([]byte("x")); err == nil {
		t.Error("write when the server is gone")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err = dial(ctx, "tcp", address); !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), k.socket) {
		t.Errorf("dial when the server is gone: %v", err)
	}
	k.listen(t)
	again, err := dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatalf("dial when the server is back: %v", err)
	}
	_ = again.Close()
}

// TestRequestEndsDial checks that a dial ends with its request, which net/http itself does not do.
func TestRequestEndsDial(t *testing.T) {
	t.Parallel()
	k := startKonnectivity(t, true)
	e := through(t, k.socket)
	transport := Transport(e.Dial(Cluster), &tls.Config{MinVersion: tls.VersionTLS12})
	defer transport.CloseIdleConnections()
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-k.requests
			cancel()
		}()
		r, err := http.NewRequestWithContext(e.ForRequest(ctx), http.MethodGet, "https://a.b.svc", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := transport.RoundTrip(r); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	for range 3 {
		<-k.gone
	}
	direct := &Egress{}
	if ctx := t.Context(); direct.ForRequest(ctx) != ctx {
		t.Error("without proxies a context is another")
	}
}

// TestMetrics counts dials by protocol, transport and stage.
func TestMetrics(t *testing.T) {
	t.Parallel()
	k := startKonnectivity(t, false)
	c := &Configuration{}
	*c = *mustDecode(t, k.socket)
	registry := prometheus.NewRegistry()
	e, err := Open(c, registry)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	conn, err := e.Dial(Cluster)(t.Context(), "tcp", echo(t))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if _, err = e.Dial(Cluster)(t.Context(), "tcp", "127.0.0.1:0"); err == nil {
		t.Error("dialled port 0")
	}
	const failures = "apiserver_egress_dialer_dial_failure_count"
	err = testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP `+failures+` Dial failure count, labeled by the protocol (http-connect or grpc), transport (tcp or uds), and stage (connect or proxy). The stage indicates at which stage the dial failed
# TYPE `+failures+` counter
`+failures+`{protocol="grpc",stage="proxy",transport="uds"} 1
# HELP apiserver_egress_dialer_dial_start_total Dial starts, labeled by the protocol (http-connect or grpc) and transport (tcp or uds).
# TYPE apiserver_egress_dialer_dial_start_total counter
apiserver_egress_dialer_dial_start_total{protocol="grpc",transport="uds"} 2
`), failures, "apiserver_egress_dialer_dial_start_total")
	if err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(registry, "apiserver_egress_dialer_dial_duration_seconds"); n != 1 {
		t.Errorf("%d histograms of durations", n)
	}
}

func mustDecode(t *testing.T, socket string) *Configuration {
	t.Helper()
	c, err := decode([]byte(`{"apiVersion":"apiserver.k8s.io/v1alpha1","kind":"EgressSelectorConfiguration",
		"egressSelections":[{"name":"Cluster","connection":{"proxyProtocol":"GRPC","transport":{"uds":{"udsName":"` +
		socket + `"}}}},{"name":"master","connection":{"proxyProtocol":"Direct"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
