package konnectivity_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"github.com/bowsprit/bowsprit/internal/net/konnectivity"
	"github.com/bowsprit/bowsprit/internal/net/konnectivity/agent"
	"github.com/bowsprit/bowsprit/internal/net/konnectivity/server"
	"github.com/bowsprit/bowsprit/internal/testing/freeport"
)

// The tests of this file count the goroutines of the process, so none of them is parallel.

// spare is the number of goroutines of a server or an agent for one peer, beyond its connections.
const spare = 200

// packets returns a source of packets: valid ones in any order, with numbers of existing and missing connections, and
// packets that no upstream program sends.
func packets(seed uint64) func() *client.Packet {
	random := rand.New(rand.NewPCG(seed, 3))
	junk := strings.Repeat("\x1b[31m\n", 2000)
	return func() *client.Packet {
		id := random.Int64N(1 << (1 + random.IntN(20)))
		text := junk[:random.IntN(len(junk))>>random.IntN(16)]
		switch random.IntN(12) {
		case 0:
			return konnectivity.DialResponse(id, random.Int64N(20), "")
		case 1:
			return konnectivity.DialResponse(id, id, text)
		case 2:
			return konnectivity.DialClose(id)
		case 3:
			return konnectivity.CloseRequest(id)
		case 4:
			return konnectivity.CloseResponse(id, text)
		case 5:
			return konnectivity.Drain()
		case 6:
			return konnectivity.DialRequest(text, id)
		case 7:
			return &client.Packet{Type: client.PacketType(random.Int32())}
		case 8:
			return &client.Packet{Type: client.PacketType(random.Int32N(8))} // without content
		}
		return konnectivity.Data(id, []byte(text))
	}
}

// floods are the packets of peers that never read the responses.
func floods() map[string]func() *client.Packet {
	var number atomic.Int64 // several calls flood at a time
	next := func() int64 { return 1000 + number.Add(1) }
	var mu sync.Mutex
	anything := packets(1)
	return map[string]func() *client.Packet{
		"data for unknown connections": func() *client.Packet { return konnectivity.Data(next(), []byte("x")) },
		"unasked connections":          func() *client.Packet { return konnectivity.DialResponse(next(), next(), "") },
		"closes of unknown ones":       func() *client.Packet { return konnectivity.CloseRequest(next()) },
		"dials of nothing":             func() *client.Packet { return konnectivity.DialRequest("nowhere", next()) },
		"anything": func() *client.Packet {
			mu.Lock()
			defer mu.Unlock()
			return anything()
		},
	}
}

// hostile calls a server as an agent, with or without a certificate.
func (s *site) hostile(t *testing.T, proves bool) konnectivity.ServerStream {
	t.Helper()
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.a.Pool}
	if proves {
		config.Certificates = []tls.Certificate{s.a.Pair(t, "agent")}
	}
	conn, err := grpc.NewClient(s.agents, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	var stream konnectivity.ServerStream
	until(t, "the server listens", func() bool {
		stream, err = konnectivity.Connect(metadata.AppendToOutgoingContext(t.Context(),
			konnectivity.AgentIDHeader, "hostile"), conn)
		if err == nil {
			_, err = stream.Header()
		}
		return err == nil
	})
	return stream
}

// flood sends packets until the peer ends the call or there were many, and returns the highest number of goroutines.
func flood(send func(*client.Packet) error, next func() *client.Packet) (most int) {
	for i := range 25_000 {
		if send(next()) != nil {
			break
		}
		if i%100 == 0 {
			most = max(most, runtime.NumGoroutine())
		}
	}
	return max(most, runtime.NumGoroutine())
}

// series returns the number of series of a registry.
func series(t *testing.T, registry *prometheus.Registry) (n int) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		n += len(f.Metric)
	}
	return n
}

// gauge returns the value of a metric without labels.
func gauge(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.Metric[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}

// TestHostileAgents runs agents that send and never read. The server drops each of them, with bounded goroutines and
// metric series, and keeps serving a valid one.
func TestHostileAgents(t *testing.T) {
	for _, proves := range []bool{true, false} {
		for name, next := range floods() {
			t.Run(fmt.Sprintf("%s, certificate %v", name, proves), func(t *testing.T) {
				registry := prometheus.NewRegistry()
				s := start(t, func(c *server.Config, o *server.Options) {
					c.Metrics = server.NewMetrics(registry)
					if !proves {
						o.AgentFiles.CA = ""
					}
				})
				stream := s.hostile(t, proves)
				before := runtime.NumGoroutine()
				if most := flood(stream.Send, next); most > before+spare {
					t.Errorf("%d goroutines, %d before", most, before)
				}
				if name == "data for unknown connections" || name == "unasked connections" {
					until(t, "the agent is dropped", func() bool { return s.server.Agents() == 0 })
				}
				if n := series(t, registry); n > 200 {
					t.Errorf("%d series of metrics", n)
				}
				_ = stream.CloseSend()
				until(t, "the agent is gone", func() bool { return s.server.Agents() == 0 })
				s.agent(t, s.agents, "")
				until(t, "an honest agent is there", func() bool { return s.server.Agents() == 1 })
				s.works(t, "GRPC")
				until(t, "no connection is left", func() bool {
					return gauge(t, registry, "konnectivity_network_proxy_server_established_connections") == 0
				})
			})
		}
	}
}

// works checks one connection end to end.
func (s *site) works(t *testing.T, protocol string) {
	t.Helper()
	address, open := greeter(t, "hello")
	conn, err := s.dial(t, protocol)(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, conn); got != "hello" {
		t.Errorf("got %q", got)
	}
	_ = conn.Close()
	until(t, "the far side is closed", func() bool { return open.Load() == 0 })
}

// TestReusedNumber runs an agent that answers every dial with the same number. It is dropped, without leftovers.
func TestReusedNumber(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := start(t, func(c *server.Config, _ *server.Options) { c.Metrics = server.NewMetrics(registry) })
	stream := s.hostile(t, true)
	dial := s.dial(t, "GRPC")
	go func() {
		for {
			p, err := stream.Recv()
			if err != nil {
				return
			}
			if p.Type == client.PacketType_DIAL_REQ {
				_ = stream.Send(konnectivity.DialResponse(p.GetDialRequest().GetRandom(), 7, ""))
			}
		}
	}()
	first, err := dial(t.Context(), "tcp", "a:1")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if second, err := dial(t.Context(), "tcp", "a:1"); err == nil {
		_ = second.Close()
		t.Error("two connections have one number")
	}
	until(t, "the agent is dropped", func() bool { return s.server.Agents() == 0 })
	if _, err := first.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a connection of the dropped agent: %v", err)
	}
	until(t, "no connection is counted", func() bool {
		return gauge(t, registry, "konnectivity_network_proxy_server_established_connections") == 0
	})
}

// TestHostileFronts has API servers that send anything and never read, over gRPC and HTTP CONNECT.
func TestHostileFronts(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := start(t, func(c *server.Config, _ *server.Options) { c.Metrics = server.NewMetrics(registry) })
	s.agent(t, s.agents, "")
	until(t, "the agent is there", func() bool { return s.server.Agents() == 1 })
	address, open := greeter(t, strings.Repeat("x", 1<<20))
	conn, err := grpc.NewClient("unix://"+s.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	before := runtime.NumGoroutine()
	const calls = 100
	for i := range uint64(calls) {
		random, next := rand.New(rand.NewPCG(i, 4)), packets(i)
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := client.NewProxyServiceClient(conn).Proxy(ctx, grpc.WaitForReady(true))
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 { // a valid start
			_ = stream.Send(konnectivity.DialRequest(address, 5))
			p, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			_ = stream.Send(konnectivity.Data(p.GetDialResponse().GetConnectID(), []byte("?")))
		}
		for range random.IntN(300) {
			if stream.Send(next()) != nil {
				break
			}
		}
		defer cancel()
		if i%3 == 0 {
			cancel()
		}
	}
	if most := runtime.NumGoroutine(); most > before+10*calls+spare {
		t.Errorf("%d goroutines, %d before", most, before)
	}
	if n := series(t, registry); n > 200 {
		t.Errorf("%d series of metrics", n)
	}
	s.works(t, "GRPC")
	_ = conn.Close()
	until(t, "nothing is left of the hostile ones", func() bool {
		return open.Load() == 0 && gauge(t, registry, "konnectivity_network_proxy_server_established_connections") == 0 &&
			gauge(t, registry, "konnectivity_network_proxy_server_pending_backend_dials") == 0
	})
}

// TestHostileConnects sends invalid CONNECT requests.
func TestHostileConnects(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := start(t, func(c *server.Config, o *server.Options) {
		c.Metrics, o.Mode = server.NewMetrics(registry), server.ModeHTTPConnect
	})
	s.agent(t, s.agents, "")
	until(t, "the agent is there", func() bool { return s.server.Agents() == 1 })
	address, open := greeter(t, strings.Repeat("x", 1<<20))
	honest := "CONNECT " + address + " HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, text := range map[string]string{
		"not HTTP":               "\x16\x03\x01\x02\x00",
		"a long name":            "CONNECT " + strings.Repeat("a", 50_000) + ":1 HTTP/1.1\r\nHost: a\r\n\r\n",
		"long headers":           "CONNECT a:1 HTTP/1.1\r\nX: " + strings.Repeat("a", 2<<20),
		"another method":         "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"a body":                 "CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\n\r\n",
		"data at once":           honest + strings.Repeat("x", 1<<20),
		"an answer not read":     honest + "?",
		"half a request":         honest[:20],
		"two requests":           honest + honest,
		"HTTP/2":                 "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"a goaway of HTTP/2":     "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"connect with no target": "CONNECT  HTTP/1.1\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			var all []net.Conn
			var writing sync.WaitGroup
			for range 20 {
				conn, err := net.Dial("unix", s.socket)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, conn)
				writing.Go(func() { _, _ = io.WriteString(conn, text) }) // the server need not read all
			}
			if most := runtime.NumGoroutine(); most > before+20*10+spare {
				t.Errorf("%d goroutines, %d before", most, before)
			}
			for _, conn := range all {
				_ = conn.Close()
			}
			writing.Wait()
		})
	}
	s.works(t, "HTTPConnect")
	until(t, "nothing is left", func() bool {
		return open.Load() == 0 && gauge(t, registry, "konnectivity_network_proxy_server_established_connections") == 0
	})
}

// TestHalfOpen stops servers of both modes while clients have begun a handshake and do not go on.
func TestHalfOpen(t *testing.T) {
	for _, mode := range []string{server.ModeGRPC, server.ModeHTTPConnect} {
		for _, hello := range []string{"", "\x16\x03\x01\x02\x00\x01"} {
			t.Run(fmt.Sprintf("%s, %d bytes", mode, len(hello)), func(t *testing.T) {
				front := ""
				s := start(t, func(_ *server.Config, o *server.Options) {
					o.Mode, o.Socket, o.FrontFiles = mode, "", o.AgentFiles
					o.Front = freeport.Address(t)
					front = o.Front
				})
				s.agent(t, s.agents, "")
				until(t, "the agent is there", func() bool { return s.server.Agents() == 1 })
				for i := range 300 {
					conn, err := net.Dial("tcp", []string{s.agents, front}[i%2])
					if err != nil {
						t.Fatal(err)
					}
					defer conn.Close()
					_, _ = io.WriteString(conn, hello)
				}
				stopped := make(chan struct{})
				go func() { s.stop(); close(stopped) }()
				select {
				case <-stopped:
				case <-time.After(time.Minute): // gRPC's own handshake timeout may be two
					t.Fatal("the server waits for clients that do not go on")
				}
			})
		}
	}
}

// hostileServer accepts agents and sends them packets.
type hostileServer struct {
	header func() metadata.MD
	serve  func(konnectivity.AgentStream) error
}

// Connect implements konnectivity.AgentService.
func (h *hostileServer) Connect(stream konnectivity.AgentStream) error {
	if err := stream.SendHeader(h.header()); err != nil {
		return err
	}
	return h.serve(stream)
}

// start serves until the test is over.
func (h *hostileServer) start(t *testing.T, s *site) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	pair := s.a.Pair(t, "127.0.0.1")
	g := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
	})))
	konnectivity.Register(g, h)
	var all sync.WaitGroup
	all.Go(func() { _ = g.Serve(listener) })
	t.Cleanup(func() { g.Stop(); all.Wait() })
	return listener.Addr().String()
}

func oneServer() metadata.MD {
	return metadata.Pairs(konnectivity.ServerIDHeader, "one", konnectivity.ServerCountHeader, "1")
}

// TestHostileServers runs servers that send and never read. The agent ends the session, and reconnects.
func TestHostileServers(t *testing.T) {
	for name, next := range floods() {
		t.Run(name, func(t *testing.T) {
			s := start(t, nil)
			sessions := make(chan int, 100)
			h := &hostileServer{header: oneServer, serve: func(stream konnectivity.AgentStream) error {
				most := flood(stream.Send, next)
				select {
				case sessions <- most:
				default:
				}
				<-stream.Context().Done()
				return nil
			}}
			before := runtime.NumGoroutine()
			address := h.start(t, s)
			registry := prometheus.NewRegistry()
			stop := s.agentOf(t, address, registry)
			most := <-sessions
			if name != "anything" && name != "unasked connections" { // an agent does not respond to these
				most = max(most, <-sessions)
			}
			if most > before+1000+spare { // each pending dial has a goroutine
				t.Errorf("%d goroutines, %d before", most, before)
			}
			if n := series(t, registry); n > 200 {
				t.Errorf("%d series of metrics", n)
			}
			stop()
		})
	}
}

// agentOf runs an agent with metrics in a registry, until stop is called.
func (s *site) agentOf(t *testing.T, address string, registry *prometheus.Registry) (stop func()) {
	t.Helper()
	a := agent.New(agent.Config{
		ID: "a", Server: address, Interval: time.Millisecond, MaxInterval: 5 * time.Millisecond, Keepalive: time.Hour,
		Log: slog.New(slog.DiscardHandler), Metrics: agent.NewMetrics(registry),
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.a.Pool},
	})
	return run(t, func(ctx context.Context) { a.Run(ctx, context.Background()) })
}

// TestManyServers runs servers that report more servers than there can be, each time with another name.
func TestManyServers(t *testing.T) {
	for _, count := range []string{"1000000000", "-1", "100", "99999999999999999999", "many"} {
		t.Run(fmt.Sprintf("%q", count), func(t *testing.T) {
			s := start(t, nil)
			calls := make(chan struct{}, 1000)
			number := 0
			var mu sync.Mutex
			h := &hostileServer{
				header: func() metadata.MD {
					mu.Lock()
					defer mu.Unlock()
					number++
					return metadata.Pairs(konnectivity.ServerIDHeader, fmt.Sprint(number),
						konnectivity.ServerCountHeader, count)
				},
				serve: func(stream konnectivity.AgentStream) error {
					select {
					case calls <- struct{}{}:
					default:
					}
					<-stream.Context().Done()
					return nil
				},
			}
			registry := prometheus.NewRegistry()
			stop := s.agentOf(t, h.start(t, s), registry)
			for range 20 {
				<-calls
			}
			if n := gauge(t, registry, "konnectivity_network_proxy_agent_open_server_connections"); n > 100 {
				t.Errorf("%v sessions", n)
			}
			stop()
		})
	}
}

// TestDialsOfHostileServers runs a server that requests sockets of the agent's host.
func TestDialsOfHostileServers(t *testing.T) {
	s := start(t, nil)
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	sink, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections in the kernel
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	answers := make(chan string, 10)
	h := &hostileServer{header: oneServer, serve: func(stream konnectivity.AgentStream) error {
		ask := func(network, address string) string {
			p := konnectivity.DialRequest(address, 1)
			p.GetDialRequest().Protocol = network
			_ = stream.Send(p)
			p, err := stream.Recv()
			if err != nil {
				return err.Error()
			}
			return p.GetDialResponse().GetError()
		}
		answers <- ask("unix", socket)
		answers <- ask("udp", sink.Addr().String())
		answers <- ask("ip4:1", "127.0.0.1")
		answers <- ask(strings.Repeat("\n", 1<<20), "127.0.0.1")
		answers <- ask("tcp", sink.Addr().String())
		<-stream.Context().Done()
		return nil
	}}
	s.agentOf(t, h.start(t, s), prometheus.NewRegistry())
	for i, want := range []string{
		"unknown network unix", "unknown network udp", "unknown network ip4:1",
		`unknown network \n\n\n\n\n\n\n\n\n\n... (1048576 bytes in all)`, "",
	} {
		if got := <-answers; got != want {
			t.Errorf("dial %d: %q, want %q", i, got, want)
		}
	}
}
