package konnectivity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/clientcmd"
	agentapp "sigs.k8s.io/apiserver-network-proxy/cmd/agent/app"
	agentoptions "sigs.k8s.io/apiserver-network-proxy/cmd/agent/app/options"
	serverapp "sigs.k8s.io/apiserver-network-proxy/cmd/server/app"
	serveroptions "sigs.k8s.io/apiserver-network-proxy/cmd/server/app/options"

	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/net/konnectivity"
	"github.com/bowsprit/bowsprit/internal/net/konnectivity/agent"
	"github.com/bowsprit/bowsprit/internal/net/konnectivity/server"
	"github.com/bowsprit/bowsprit/internal/testing/authority"
	"github.com/bowsprit/bowsprit/internal/testing/freeport"
)

// site is the configuration that both halves of a test share.
type site struct {
	socket     string
	port       int    // for agents
	ca         string // of the server's certificate
	cert, key  string
	token      string // token file of agents; "" for client certificates
	kubeconfig string // kubeconfig of the server that reviews the token
	id         string
	count      int
	agentCert  string
	agentKey   string
	config     string // an EgressSelectorConfiguration for this site
}

// The service account in the page's manifests.
const (
	account   = "konnectivity-agent"
	namespace = "kube-system"
	audience  = "system:konnectivity-server"
)

func newSite(t testing.TB) *site {
	t.Helper()
	a := authority.New(t)
	s := &site{port: freeport.Port(t), id: "one", count: 1}
	dir, err := os.MkdirTemp("", "k") // a socket path is limited to about 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.socket = filepath.Join(dir, "konnectivity-server.socket")
	s.ca, s.cert, s.key = a.Files(t, "127.0.0.1")
	_, s.agentCert, s.agentKey = a.Files(t, "agent")
	s.config = filepath.Join(dir, "egress-selector-configuration.yaml")
	err = os.WriteFile(s.config, []byte(`apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: GRPC
    transport:
      uds:
        udsName: `+s.socket+"\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// half starts a server or an agent, and returns a function that stops it.
type half func(t testing.TB, s *site) (stop func())

func run(t testing.TB, f func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { f(ctx) })
	stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	t.Cleanup(stop)
	return stop
}

func ourServer(t testing.TB, s *site) func() {
	c := server.Config{
		ID: s.id, Count: s.count, Strategies: []server.Strategy{server.Default},
		Metrics: server.NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler),
	}
	files := server.Files{Cert: s.cert, Key: s.key, CA: s.ca}
	if s.token != "" {
		files.CA = ""
		config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		c.Authenticate, err = server.Reviewer(config,
			server.Account{Namespace: namespace, Name: account, Audience: audience})
		if err != nil {
			t.Fatal(err)
		}
	}
	o := server.Options{
		Mode: server.ModeGRPC, Socket: s.socket, Agents: fmt.Sprintf("127.0.0.1:%d", s.port), AgentFiles: files,
		Keepalive: time.Hour, FrontKeepalive: time.Hour,
		Pages: konnectivity.Pages{Metrics: prometheus.NewRegistry(), Health: "127.0.0.1:0", Admin: "127.0.0.1:0"},
	}
	return run(t, func(ctx context.Context) {
		if err := server.New(c).Run(ctx, o); err != nil {
			t.Error(err)
		}
	})
}

func ourAgent(t testing.TB, s *site) func() {
	pem, err := os.ReadFile(s.ca)
	if err != nil {
		t.Fatal(err)
	}
	c := agent.Config{
		ID: "agent", Server: fmt.Sprintf("127.0.0.1:%d", s.port), TokenFile: s.token, Interval: 100 * time.Millisecond,
		MaxInterval: time.Second, Keepalive: time.Hour, TLS: &tls.Config{MinVersion: tls.VersionTLS12},
		Metrics: agent.NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler),
	}
	c.TLS.RootCAs = x509.NewCertPool()
	c.TLS.RootCAs.AppendCertsFromPEM(pem)
	if s.token == "" {
		pair, err := tls.LoadX509KeyPair(s.agentCert, s.agentKey)
		if err != nil {
			t.Fatal(err)
		}
		c.TLS.Certificates = []tls.Certificate{pair}
	}
	return run(t, func(ctx context.Context) { agent.New(c).Run(ctx, context.Background()) })
}

func upstreamServer(t testing.TB, s *site) func() {
	o := serveroptions.NewProxyRunOptions()
	o.UdsName, o.ServerPort, o.AgentPort, o.AgentBindAddress = s.socket, 0, s.port, "127.0.0.1"
	o.AdminPort, o.HealthPort, o.HealthBindAddress = freeport.Port(t), freeport.Port(t), "127.0.0.1"
	o.ClusterCert, o.ClusterKey, o.ServerID, o.ServerCount = s.cert, s.key, s.id, s.count
	if s.token != "" {
		o.AgentNamespace, o.AgentServiceAccount, o.AuthenticationAudience = namespace, account, audience
		o.KubeconfigPath = s.kubeconfig
	} else {
		o.ClusterCaCert = s.ca
	}
	return run(t, func(ctx context.Context) {
		if err := new(serverapp.Proxy).Run(o, ctx.Done()); err != nil {
			t.Error(err)
		}
	})
}

func upstreamAgent(t testing.TB, s *site) func() {
	o := agentoptions.NewGrpcProxyAgentOptions()
	o.ProxyServerHost, o.ProxyServerPort, o.CaCert = "127.0.0.1", s.port, s.ca
	o.AdminServerPort, o.HealthServerPort, o.HealthServerHost = freeport.Port(t), freeport.Port(t), "127.0.0.1"
	o.SyncInterval, o.SyncIntervalCap = 100*time.Millisecond, time.Second
	if o.ServiceAccountTokenPath = s.token; s.token == "" {
		o.AgentCert, o.AgentKey = s.agentCert, s.agentKey
	}
	return run(t, func(ctx context.Context) {
		if err := new(agentapp.Agent).Run(o, make(chan struct{}), ctx.Done()); err != nil {
			t.Error(err)
		}
	})
}

// pairs are the combinations of servers and agents.
var pairs = []struct {
	name          string
	server, agent half
}{
	{"ours", ourServer, ourAgent},
	{"upstream's server, our agent", upstreamServer, ourAgent},
	{"our server, upstream's agent", ourServer, upstreamAgent},
	{"upstream's", upstreamServer, upstreamAgent},
}

// dialer waits for a connection through a site and returns a dial function.
func dialer(t testing.TB, s *site, address string) egress.Dial {
	t.Helper()
	c, err := egress.Read(s.config)
	if err != nil {
		t.Fatal(err)
	}
	e, err := egress.Open(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	dial := e.Dial(egress.Cluster)
	within(t, func() error {
		conn, err := dial(context.Background(), "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	return dial
}

// within waits until f succeeds.
func within(t testing.TB, f func() error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // upstream's halves send no signal to wait for
	}
}

// echo starts a server that sends received bytes back.
func echo(t testing.TB) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	return strings.Replace(listener.Addr().String(), "127.0.0.1", "localhost", 1) // the agent resolves the name
}
