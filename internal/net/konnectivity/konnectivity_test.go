package konnectivity_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/net/konnectivity"
	"github.com/bowsprit/bowsprit/internal/net/konnectivity/agent"
	"github.com/bowsprit/bowsprit/internal/net/konnectivity/server"
	"github.com/bowsprit/bowsprit/internal/testing/authority"
	"github.com/bowsprit/bowsprit/internal/testing/freeport"
)

// site has servers, and agents that reach them.
type site struct {
	a      *authority.Authority
	socket string
	agents string // the address for agents
	server *server.Server
	stop   func() // ends the server
}

// start runs a server. change may change its configuration.
func start(t *testing.T, change func(*server.Config, *server.Options)) *site {
	t.Helper()
	s := &site{a: authority.New(t), socket: filepath.Join(t.TempDir(), "k.socket")}
	ca, cert, key := s.a.Files(t, "127.0.0.1")
	s.agents = freeport.Address(t)
	c := server.Config{
		ID: "one", Count: 1, Strategies: []server.Strategy{server.Default},
		Metrics: server.NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler),
	}
	o := server.Options{
		Mode: server.ModeGRPC, Socket: s.socket, Agents: s.agents, Keepalive: time.Hour, FrontKeepalive: time.Hour,
		AgentFiles: server.Files{Cert: cert, Key: key, CA: ca},
		Pages:      konnectivity.Pages{Metrics: prometheus.NewRegistry(), Health: "127.0.0.1:0", Admin: "127.0.0.1:0"},
	}
	if change != nil {
		change(&c, &o)
	}
	s.server = server.New(c)
	s.stop = run(t, func(ctx context.Context) {
		if err := s.server.Run(ctx, o); err != nil {
			t.Error(err)
		}
	})
	return s
}

// run has f run until the function that it returns is called, or the test is over.
func run(t *testing.T, f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { f(ctx) })
	stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	t.Cleanup(stop)
	return stop
}

// agent runs an agent until stop is called; drain drains it, and ended is closed at its end.
func (s *site) agent(t *testing.T, address, identifiers string) (stop, drain func(), ended <-chan struct{}) {
	t.Helper()
	a := agent.New(agent.Config{
		ID: "agent-" + identifiers, Identifiers: identifiers, Server: address, Interval: 10 * time.Millisecond,
		MaxInterval: 50 * time.Millisecond, Keepalive: time.Hour, Log: slog.New(slog.DiscardHandler),
		Metrics: agent.NewMetrics(prometheus.NewRegistry()),
		TLS: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: s.a.Pool, Certificates: []tls.Certificate{s.a.Pair(t, "agent")},
		},
	})
	draining, drain := context.WithCancel(context.Background())
	over := make(chan struct{})
	stop = run(t, func(ctx context.Context) {
		defer close(over)
		defer drain()
		a.Run(ctx, draining)
	})
	return stop, drain, over
}

// dial returns a Dial through the server.
func (s *site) dial(t *testing.T, protocol string) egress.Dial {
	t.Helper()
	c, err := egress.Read(file(t, `{"apiVersion":"apiserver.k8s.io/v1beta1","kind":"EgressSelectorConfiguration",
		"egressSelections":[{"name":"cluster","connection":{"proxyProtocol":"`+protocol+`",
		"transport":{"uds":{"udsName":"`+s.socket+`"}}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	e, err := egress.Open(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e.Dial(egress.Cluster)
}

// until waits for a condition that others bring about.
func until(t *testing.T, desc string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so after a minute: %s", desc)
		}
	}
}

// greeter starts a server that answers the first data on a connection with text, and counts open connections.
func greeter(t *testing.T, text string) (address string, open *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	open = &atomic.Int64{}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open.Add(1)
			all.Go(func() {
				defer open.Add(-1)
				defer conn.Close()
				if _, err := conn.Read(make([]byte, 1)); err != nil {
					return
				}
				_, _ = io.WriteString(conn, text+"\n")
				_, _ = io.Copy(io.Discard, conn)
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); all.Wait() })
	return listener.Addr().String(), open
}

func readAll(t *testing.T, conn net.Conn) string {
	t.Helper()
	_, _ = io.WriteString(conn, "?")
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(line)
}

// TestBothModes checks that connections work in both modes, and that all sides end when one side ends them.
func TestBothModes(t *testing.T) {
	t.Parallel()
	for mode, protocol := range map[string]string{
		server.ModeGRPC: "GRPC", server.ModeHTTPConnect: "HTTPConnect",
	} {
		s := start(t, func(_ *server.Config, o *server.Options) { o.Mode = mode })
		s.agent(t, s.agents, "")
		until(t, "the agent is there", func() bool { return s.server.Agents() == 1 })
		address, open := greeter(t, "hello")
		dial := s.dial(t, protocol)
		conn, err := dial(t.Context(), "tcp", address)
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		if got := readAll(t, conn); got != "hello" {
			t.Errorf("%s: %q", mode, got)
		}
		_ = conn.Close()
		until(t, "the far side is closed", func() bool { return open.Load() == 0 })
		_, err = dial(t.Context(), "tcp", "127.0.0.1:1")
		want := "dial tcp 127.0.0.1:1: connect: connection refused"
		if mode == server.ModeHTTPConnect {
			want = "code 502: 502 Bad Gateway"
		}
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: nothing listens there: %v", mode, err)
		}
	}
}

// TestNoAgent checks that a dial without an agent fails at once, but waits if the last one disconnected a moment ago.
func TestNoAgent(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	dial := s.dial(t, "GRPC")
	address, _ := greeter(t, "hello")
	if _, err := dial(t.Context(), "tcp", address); err == nil || err.Error() != "No agent available" {
		t.Errorf("got %v", err)
	}
	stop, _, _ := s.agent(t, s.agents, "")
	until(t, "the agent is there", func() bool { return s.server.Agents() == 1 })
	stop()
	until(t, "the agent is gone", func() bool { return s.server.Agents() == 0 })
	answer := make(chan error)
	go func() {
		conn, err := dial(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		answer <- err
	}()
	s.agent(t, s.agents, "")
	if err := <-answer; err != nil {
		t.Errorf("while the agent was replaced: %v", err)
	}
}

// TestDrain checks that a draining agent gets no more connections, and ends with its last one.
func TestDrain(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	_, drain, ended := s.agent(t, s.agents, "host=first")
	until(t, "the agent is there", func() bool { return s.server.Agents() == 1 })
	address, open := greeter(t, "hello")
	dial := s.dial(t, "GRPC")
	conn, err := dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	drain()
	s.agent(t, s.agents, "host=second")
	until(t, "the other agent is there", func() bool { return s.server.Agents() == 2 })
	if got := readAll(t, conn); got != "hello" {
		t.Errorf("a connection of a draining agent: %q", got)
	}
	select {
	case <-ended:
		t.Error("the agent has ended with a connection")
	default:
	}
	_ = conn.Close()
	<-ended
	until(t, "nothing is open", func() bool { return open.Load() == 0 })
}

// TestStrategies checks that agents are chosen by their identifiers.
func TestStrategies(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config, _ *server.Options) {
		c.Strategies = []server.Strategy{server.DestHost, server.DefaultRoute}
	})
	address, open := greeter(t, "hello")
	stopNear, _, _ := s.agent(t, s.agents, "ipv4=127.0.0.1")
	s.agent(t, s.agents, "ipv4=10.9.9.9")
	until(t, "two agents are there", func() bool { return s.server.Agents() == 2 })
	dial := s.dial(t, "GRPC")
	conn, err := dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	stopNear() // it was that agent's connection
	until(t, "the connection is over", func() bool { return open.Load() == 0 })
	_ = conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if conn, err := dial(ctx, "tcp", address); err == nil {
		_ = conn.Close()
		t.Error("an agent that is elsewhere was asked")
	}
	s.agent(t, s.agents, "default-route=true")
	until(t, "another agent is there", func() bool { return s.server.Agents() == 2 })
	if conn, err = dial(t.Context(), "tcp", address); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	for text, want := range map[string]string{
		"": "proxy strategies cannot be empty", "nearest": "unknown proxy strategy: nearest",
	} {
		if _, err := server.ParseStrategies(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestSeveralServers checks that an agent finds all servers behind one address, also after restarts.
func TestSeveralServers(t *testing.T) {
	t.Parallel()
	first := start(t, func(c *server.Config, _ *server.Options) { c.Count = 2 })
	second := start(t, func(c *server.Config, o *server.Options) {
		c.ID, c.Count = "two", 2
		o.AgentFiles.CA, o.AgentFiles.Cert, o.AgentFiles.Key = first.a.Files(t, "127.0.0.1")
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { // alternates like a load balancer
		for i := 0; ; i++ {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", []string{first.agents, second.agents}[i/2%2])
			if err != nil {
				_ = near.Close()
				continue
			}
			all.Go(func() { _, _ = io.Copy(far, near); _ = far.Close() })
			all.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); first.stop(); second.stop(); all.Wait() })
	stop, _, _ := first.agent(t, listener.Addr().String(), "")
	until(t, "both servers have the agent", func() bool {
		return first.server.Agents() == 1 && second.server.Agents() == 1
	})
	stop()
	until(t, "both servers know that it is gone", func() bool {
		return first.server.Agents() == 0 && second.server.Agents() == 0
	})
}

// TestStrangers tests agents with an invalid token or certificate.
func TestStrangers(t *testing.T) {
	t.Parallel()
	requested := make(chan string, 100)
	s := start(t, func(c *server.Config, o *server.Options) {
		o.AgentFiles.CA = ""
		c.Authenticate = func(_ context.Context, token string) error {
			requested <- token
			return errors.New("lookup failed: service account jwt not valid")
		}
	})
	s.agent(t, s.agents, "") // sends no token
	a := agent.New(agent.Config{
		ID: "a", Server: s.agents, Interval: time.Millisecond, MaxInterval: time.Millisecond, Keepalive: time.Hour,
		TokenFile: file(t, "secret\n"), Log: slog.New(slog.DiscardHandler),
		Metrics: agent.NewMetrics(prometheus.NewRegistry()),
		TLS:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.a.Pool},
	})
	run(t, func(ctx context.Context) { a.Run(ctx, context.Background()) })
	for range 3 {
		if token := <-requested; token != "secret" {
			t.Errorf("asked about %q", token)
		}
	}
	if s.server.Agents() != 0 || a.Ready() {
		t.Error("a stranger was taken for an agent")
	}
	strict := start(t, nil)
	var conn net.Conn
	until(t, "the server listens", func() (ok bool) {
		var err error
		conn, err = tls.Dial("tcp", strict.agents, &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: strict.a.Pool, NextProtos: []string{"h2"},
		})
		return err == nil
	})
	defer conn.Close()
	_, err := io.Copy(io.Discard, conn)
	if err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("a client without a certificate: %v", err)
	}
}

// TestPages checks that the pages report whether there is an agent.
func TestPages(t *testing.T) {
	t.Parallel()
	why := atomic.Pointer[string]{}
	text := "no connection to any proxy agent"
	why.Store(&text)
	registry := prometheus.NewRegistry()
	server.NewMetrics(registry)
	at := freeport.Address(t)
	p := konnectivity.Pages{
		Ready: func() string { return *why.Load() }, NotReady: http.StatusInternalServerError, Metrics: registry,
		Health: at, Admin: "127.0.0.1:0", Profiles: true,
	}
	stop, err := p.Serve(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	get := func(path string) string {
		resp, err := http.Get("http://" + at + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return fmt.Sprint(resp.StatusCode, " ", string(body))
	}
	if got := get("/healthz"); got != "200 ok" {
		t.Error(got)
	}
	if got := get("/readyz"); got != "500 "+text {
		t.Error(got)
	}
	none := ""
	why.Store(&none)
	if got := get("/ready"); got != "200 ok" {
		t.Error(got)
	}
	if got := get("/metrics"); !strings.Contains(got, "\nkonnectivity_network_proxy_server_established_connections 0\n") {
		t.Error(got)
	}
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
