package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"github.com/bowsprit/bowsprit/internal/net/konnectivity"
)

// The modes for API servers.
const (
	ModeGRPC        = "grpc"
	ModeHTTPConnect = "http-connect"
)

// Files are a certificate, its key, and an authority of the other side's certificates, "" for none, PEM.
type Files struct{ Cert, Key, CA string }

// tls reads the files.
func (f Files) tls(ciphers []uint16) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("failed to load X509 key pair %s and %s: %w", f.Cert, f.Key, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, CipherSuites: ciphers}
	if f.CA == "" {
		return c, nil
	}
	pem, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, fmt.Errorf("failed to read cluster CA cert %s: %w", f.CA, err)
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("failed to append cluster CA cert to the cert pool")
	}
	return c, nil
}

// Options configure the listeners of a server.
type Options struct {
	Mode string // ModeGRPC or ModeHTTPConnect
	// Socket is the socket for API servers; if it is "", they use Front with FrontFiles. KeepSocket refuses to replace
	// a file.
	Socket     string
	KeepSocket bool
	Front      string
	FrontFiles Files
	// Agents is the address for agents, with AgentFiles.
	Agents     string
	AgentFiles Files
	Ciphers    []uint16 // of TLS 1.2; nil means Go's default
	// Keepalive and FrontKeepalive are the idle times after which agents and API servers are pinged.
	Keepalive, FrontKeepalive time.Duration
	Pages                     konnectivity.Pages
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context, o Options) error {
	o.Pages.Ready, o.Pages.NotReady = s.Ready, http.StatusInternalServerError
	agentTLS, err := o.AgentFiles.tls(o.Ciphers)
	if err != nil {
		return err
	}
	agents := grpc.NewServer(
		grpc.Creds(konnectivity.Handshake(credentials.NewTLS(agentTLS))),
		grpc.ConnectionTimeout(konnectivity.HandshakeTimeout),
		grpc.MaxConcurrentStreams(agentCalls), grpc.MaxHeaderListSize(maxHeader),
		// An agent without a call is none.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: o.Keepalive, MaxConnectionIdle: time.Minute}),
		grpc.KeepaliveEnforcementPolicy(
			keepalive.EnforcementPolicy{MinTime: 30 * time.Second, PermitWithoutStream: true}))
	konnectivity.Register(agents, s)
	raw, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Agents)
	if err != nil {
		return fmt.Errorf("agent port: %w", err)
	}
	agentListener := konnectivity.NewGate(raw, maxAgents)
	defer agentListener.CloseAll()
	front, frontListener, err := s.front(ctx, &o)
	if err != nil {
		return err
	}
	defer frontListener.CloseAll()
	stopPages, err := o.Pages.Serve(s.config.Log)
	if err != nil {
		return err
	}
	defer stopPages()
	s.config.Log.Info("serving", "agents", agentListener.Addr(), "front", frontListener.Addr(), "mode", o.Mode,
		"id", s.config.ID, "servers", s.config.Count)

	ended := make(chan error, 2) // of both
	var all sync.WaitGroup
	all.Go(func() { ended <- agents.Serve(agentListener) })
	all.Go(func() { ended <- front.serve(frontListener) })
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	// gRPC waits for handshakes until they time out, unless their connections are closed.
	frontListener.CloseAll()
	agentListener.CloseAll()
	front.stop()
	agents.Stop()
	all.Wait()
	return err
}

const (
	// agentCalls bounds the calls of one connection: an agent has one, a proxy in front of agents some more.
	agentCalls = 16
	// frontCalls bounds the calls of an API server, one for each connection.
	frontCalls = 10_000
	// maxHeader bounds the metadata of a call: a token and an agent's identifiers.
	maxHeader = 64 << 10
)

// connKey is the key of a request's *konnectivity.Conn in its context.
type connKey struct{}

// frontServer is the server for API servers.
type frontServer struct {
	serve func(net.Listener) error
	stop  func()
}

func (s *Server) front(ctx context.Context, o *Options) (*frontServer, *konnectivity.Gate, error) {
	var config *tls.Config
	network, address := "unix", o.Socket
	if o.Socket == "" {
		network, address = "tcp", o.Front
		var err error
		if config, err = o.FrontFiles.tls(o.Ciphers); err != nil {
			return nil, nil, err
		}
	} else if !o.KeepSocket {
		if err := os.Remove(o.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, nil, err
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, network, address)
	if err == nil && network == "unix" {
		err = os.Chmod(o.Socket, 0o770) // as upstream's
	}
	if err != nil {
		return nil, nil, fmt.Errorf("listen for API servers: %w", err)
	}
	gate := konnectivity.NewGate(listener, maxFronts)
	if o.Mode == ModeHTTPConnect {
		return s.httpFront(config), gate, nil
	}
	secure := insecure.NewCredentials()
	if config != nil {
		secure = credentials.NewTLS(config)
	}
	rpc := grpc.NewServer(grpc.Creds(konnectivity.Handshake(secure)),
		grpc.ConnectionTimeout(konnectivity.HandshakeTimeout),
		grpc.MaxConcurrentStreams(frontCalls), grpc.MaxHeaderListSize(maxHeader),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: o.FrontKeepalive}))
	client.RegisterProxyServiceServer(rpc, s)
	return &frontServer{serve: rpc.Serve, stop: rpc.Stop}, gate, nil
}

// httpFront serves HTTP CONNECT, with TLS unless config is nil.
func (s *Server) httpFront(config *tls.Config) *frontServer {
	web := &http.Server{
		Handler: s, ReadHeaderTimeout: konnectivity.HandshakeTimeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: maxHeader,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if secure, ok := c.(*tls.Conn); ok {
				c = secure.NetConn()
			}
			return context.WithValue(ctx, connKey{}, c)
		},
		// Log lines about clients that disconnect in their handshake are of no use.
		ErrorLog: slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug),
	}
	serve := web.Serve
	if config != nil {
		config.NextProtos = []string{"http/1.1"}
		serve = func(l net.Listener) error { return web.Serve(tls.NewListener(l, config)) }
	}
	return &frontServer{serve: serve, stop: func() { _ = web.Close() }}
}
