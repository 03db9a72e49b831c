// Package agent is a Konnectivity agent: it connects to Konnectivity servers and opens connections at their request.
// Upstream's is proxy-agent of sigs.k8s.io/apiserver-network-proxy.
//
// Run keeps a session with each server, and trusts none with the memory of its host: dials, connections, queues and
// responses have bounds. A server that sends packets and does not read the responses loses its session. A session has a
// goroutine that receives, and two for each connection: one that dials and then reads, and one that writes. A server's
// data for a connection waits in a queue. Since the protocol has no flow control for a connection, a full queue blocks
// the session, but only for stallLimit.
package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
	"github.com/bowsprit/bowsprit/internal/net/konnectivity"
)

// Config configures an Agent.
type Config struct {
	ID          string
	Identifiers string // --agent-identifiers
	Server      string // "host:port", of one server or of a load balancer
	TLS         *tls.Config
	TokenFile   string // "" means no token; it is reread for each connection, since tokens are renewed
	// Interval is the pause before the agent looks for another server; it grows up to MaxInterval with each failure.
	Interval, MaxInterval time.Duration
	Keepalive             time.Duration
	// Forever continues the search beyond the reported number of servers, since the number may change.
	Forever bool
	Metrics *Metrics
	Log     *slog.Logger
}

// Agent is a Konnectivity agent.
type Agent struct {
	config Config

	mu struct {
		sync.Mutex
		sessions map[string]*session // by the server's ID
		servers  int                 // their number, as last reported
		draining bool
	}
	ended chan struct{} // a session has ended; capacity 1: one wake-up covers several
}

// New returns an agent.
func New(c Config) *Agent {
	a := &Agent{config: c, ended: make(chan struct{}, 1)}
	a.mu.sessions, a.mu.servers = map[string]*session{}, 1
	return a
}

// Ready reports whether there is a server.
func (a *Agent) Ready() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.mu.sessions) > 0
}

// Run serves until ctx ends. When drain ends first, Run tells the servers to request no more connections, and returns
// once the existing ones have ended.
func (a *Agent) Run(ctx, drain context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	stop := context.AfterFunc(drain, func() { a.drain(cancel) })
	defer stop()
	pause := a.config.Interval
	for ctx.Err() == nil {
		err := a.connect(ctx, &all)
		switch {
		case err == nil:
			pause = a.config.Interval
		case ctx.Err() == nil:
			a.config.Log.Warn("Konnectivity server cannot be reached; retried", "server", a.config.Server,
				"in", pause, "error", foreign.Error(err))
		}
		wait := time.NewTimer(pause + rand.N(pause/10+1))
		select {
		case <-wait.C:
		case <-a.ended: // staggers the reconnection of agents after the end of a server
			wait.Reset(rand.N(pause/5 + 1))
			select {
			case <-wait.C:
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
		wait.Stop()
		if err != nil {
			pause = min(pause*3/2, a.config.MaxInterval)
		}
	}
}

// connect makes a session with one more server, if there is one more.
func (a *Agent) connect(ctx context.Context, all *sync.WaitGroup) error {
	a.mu.Lock()
	enough := a.mu.draining || !a.config.Forever && len(a.mu.sessions) >= a.mu.servers ||
		len(a.mu.sessions) >= maxServers
	a.mu.Unlock()
	if enough {
		return nil
	}
	s, servers, err := a.open(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	_, twice := a.mu.sessions[s.server]
	if !twice {
		a.mu.sessions[s.server], a.mu.servers = s, servers
		a.config.Metrics.sessions.Set(float64(len(a.mu.sessions)))
		a.config.Metrics.servers.Set(float64(servers))
	}
	a.mu.Unlock()
	if twice { // the load balancer has led to the same one
		s.close()
		return nil
	}
	a.config.Log.Info("connected to a Konnectivity server", "server", s.server, "servers", servers)
	all.Go(func() {
		err := s.serve()
		a.forget(s)
		if ctx.Err() == nil {
			a.config.Log.Warn("the connection to a Konnectivity server ended; the agent reconnects", "server", s.server,
				"error", foreign.Error(err))
		}
	})
	return nil
}

func (a *Agent) forget(s *session) {
	a.mu.Lock()
	delete(a.mu.sessions, s.server)
	a.config.Metrics.sessions.Set(float64(len(a.mu.sessions)))
	a.mu.Unlock()
	select {
	case a.ended <- struct{}{}:
	default:
	}
}

// open calls a server, and returns the number of servers that it reports.
func (a *Agent) open(ctx context.Context) (_ *session, servers int, err error) {
	c := &a.config
	headers := []string{konnectivity.AgentIDHeader, c.ID, konnectivity.IdentifiersHeader, c.Identifiers}
	if c.TokenFile != "" {
		token, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return nil, 0, err
		}
		headers = append(headers, konnectivity.TokenHeader, "Bearer "+strings.TrimSpace(string(token)))
	}
	conn, err := grpc.NewClient("dns:///"+c.Server, grpc.WithTransportCredentials(credentials.NewTLS(c.TLS)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: c.Keepalive, PermitWithoutStream: true}),
		grpc.WithIdleTimeout(0), grpc.WithMaxHeaderListSize(maxHeader), grpc.WithDisableServiceConfig())
	if err != nil {
		return nil, 0, err
	}
	life, end := context.WithCancelCause(metadata.AppendToOutgoingContext(ctx, headers...))
	s := &session{agent: a, conn: conn, ctx: life, end: end}
	s.mu.far, s.mu.dials = map[int64]*far{}, map[int64]context.CancelFunc{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	late := time.AfterFunc(openTimeout, func() { end(errLate) })
	defer late.Stop()
	if s.stream, err = konnectivity.Connect(life, conn); err != nil {
		return nil, 0, err
	}
	header, err := s.stream.Header()
	if err == nil && header == nil {
		_, err = s.stream.Recv() // it has the reason
	}
	if err != nil {
		return nil, 0, err
	}
	id, count := header.Get(konnectivity.ServerIDHeader), header.Get(konnectivity.ServerCountHeader)
	if len(id) != 1 || len(count) != 1 {
		if _, err := s.stream.Recv(); err != nil {
			return nil, 0, err
		}
		return nil, 0, fmt.Errorf("expected one server ID and one server count, got %s and %s",
			foreign.Text(fmt.Sprint(id)), foreign.Text(fmt.Sprint(count)))
	}
	if servers, err = strconv.Atoi(count[0]); err != nil {
		return nil, 0, err
	}
	if servers < 0 || servers > maxServers || len(id[0]) > maxID {
		return nil, 0, fmt.Errorf("the server reports %d servers and an ID of %d bytes; an agent accepts %d "+
			"and %d at most", servers, len(id[0]), maxServers, maxID)
	}
	s.server = foreign.Text(id[0])
	if !late.Stop() {
		return nil, 0, errLate
	}
	s.begin()
	return s, servers, nil
}

const (
	// maxServers bounds the number of servers, which a server reports, and maxID the bytes of its ID.
	maxServers, maxID = 100, 253
	// maxHeader bounds a server's metadata.
	maxHeader = 16 << 10
)

var errLate = errors.New("the server took too long")

// openTimeout bounds the wait for acceptance by a server, which reviews the token at the API server.
const openTimeout = 20 * time.Second

// drain notifies all servers, and calls cancel once no connection is left.
func (a *Agent) drain(cancel func()) {
	a.mu.Lock()
	a.mu.draining = true
	var all []*session
	for _, s := range a.mu.sessions {
		all = append(all, s)
	}
	a.mu.Unlock()
	a.config.Log.Info("draining: waiting for open connections to end", "servers", len(all))
	for _, s := range all {
		_ = s.send(konnectivity.Drain())
		s.whenIdle()
	}
	cancel()
}
