// Package server is a Konnectivity server: it takes agents, and hands connections that API servers ask for to one of
// them. Upstream's is proxy-server of sigs.k8s.io/apiserver-network-proxy.
//
// A link is a connection between a front (a call of ProxyService.Proxy, or an HTTP CONNECT) and an agent. What an agent
// sends is handed to the link's queue by the goroutine that receives from that agent; the front has one goroutine that
// takes it from there and one that receives from the API server. A front that does not read holds up its agent when its
// queue is full, because the protocol has no flow control for a connection, but for stallLimit only.
//
// An agent and an API server are strangers until an agent is accepted or a connection is there, and hostile even then:
// everything that they can size has a bound (connections, calls, dials, links, queued packets and bytes, headers,
// metrics). An agent beyond a bound is dropped: the server closes its connection and logs the reason.
//
// A Server is safe for concurrent use. Locks: Server.mu, then agent.mu, then those of a queue; none is held while
// something is sent.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
	"github.com/bowsprit/bowsprit/internal/net/konnectivity"
)

// Config configures a Server.
type Config struct {
	// ID identifies this server among several, and Count is their number: agents connect to that many.
	ID    string
	Count int
	// Strategies choose an agent; they are tried in order.
	Strategies []Strategy
	// Authenticate returns an error if the token of an agent is invalid; nil requires no token.
	Authenticate func(ctx context.Context, token string) error
	Metrics      *Metrics
	Log          *slog.Logger
}

// Server is a Konnectivity server.
type Server struct {
	client.UnimplementedProxyServiceServer
	config  Config
	reviews chan struct{} // capacity maxReviews: one for each review in progress
	fronts  atomic.Int64  // calls of API servers

	mu struct {
		sync.Mutex
		agents []*agent
		// changed is closed when an agent connects.
		changed chan struct{}
		// left is when the last agent disconnected.
		left time.Time
	}
}

var (
	_ client.ProxyServiceServer = (*Server)(nil)
	_ konnectivity.AgentService = (*Server)(nil)
)

// New returns a server.
func New(c Config) *Server {
	s := &Server{config: c, reviews: make(chan struct{}, maxReviews)}
	s.mu.changed = make(chan struct{})
	return s
}

// Agents returns how many agents are connected.
func (s *Server) Agents() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.agents)
}

// Connect implements konnectivity.AgentService: an agent is connected until it returns.
func (s *Server) Connect(stream konnectivity.AgentStream) error {
	s.config.Metrics.calls.WithLabelValues("Connect").Inc()
	defer s.config.Metrics.calls.WithLabelValues("Connect").Dec()
	conn := konnectivity.PeerOf(stream.Context())
	md, _ := metadata.FromIncomingContext(stream.Context())
	ids := md.Get(konnectivity.AgentIDHeader)
	if len(ids) != 1 {
		return status.Errorf(codes.InvalidArgument, "expected one agent ID in the context, got %s",
			foreign.Text(fmt.Sprint(ids)))
	}
	id := foreign.Cut(ids[0], maxID)
	if err := s.authenticate(stream.Context(), md); err != nil {
		err = foreign.Error(err)
		s.config.Log.Warn("agent refused; it tries again", "agent", id, "error", err)
		return status.Error(codes.Unauthenticated, err.Error())
	}
	near, err := konnectivity.ParseIdentifiers(strings.Join(md.Get(konnectivity.IdentifiersHeader), "&"), false)
	if err != nil {
		return status.Error(codes.InvalidArgument, foreign.Text(err.Error()))
	}
	if s.Agents() >= maxAgents || !conn.Know() {
		s.config.Log.Warn("agent refused: there are too many", "agent", id, "agents", s.Agents())
		return status.Error(codes.ResourceExhausted, "too many agents")
	}
	err = stream.SendHeader(metadata.Pairs(konnectivity.ServerIDHeader, s.config.ID,
		konnectivity.ServerCountHeader, strconv.Itoa(s.config.Count)))
	if err != nil {
		return err
	}
	a := newAgent(s, id, near, stream)
	s.add(a)
	go a.outbox.Run() // ends with the call
	err = a.receive()
	s.remove(a)
	a.leave()
	if errors.Is(err, konnectivity.ErrPeerFull) || errors.Is(err, errReused) {
		a.dropped(err)
		conn.Drop() // ending the call alone would wait until the agent reads
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	s.config.Log.Info("agent gone; its connections are closed", "agent", a.id, "error", foreign.Error(err))
	return err
}

// Bounds of a server.
const (
	maxAgents  = 8192
	maxFronts  = 32_768 // calls of API servers
	maxID      = 253    // bytes of an agent's ID in the log
	maxReviews = 64     // concurrent token reviews; more wait
	// reviewTimeout bounds the review of a token, including its wait.
	reviewTimeout = 20 * time.Second
)

func (s *Server) authenticate(ctx context.Context, md metadata.MD) error {
	if s.config.Authenticate == nil {
		return nil
	}
	given := md.Get(konnectivity.TokenHeader)
	switch {
	case len(given) == 0:
		//lint:ignore ST1005 upstream's text
		return errors.New("Authentication context was not found in metadata")
	case len(given) > 1:
		return fmt.Errorf("too many (%d) tokens are received", len(given))
	}
	token, ok := strings.CutPrefix(given[0], "Bearer ")
	if !ok {
		return fmt.Errorf("received token does not have %q prefix", "Bearer ")
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	select {
	case s.reviews <- struct{}{}:
		defer func() { <-s.reviews }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return s.config.Authenticate(ctx, token)
}

func (s *Server) add(a *agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.agents = append(s.mu.agents, a)
	close(s.mu.changed)
	s.mu.changed = make(chan struct{})
	s.config.Metrics.agents(s.config.Strategies, s.mu.agents)
	s.config.Log.Info("agent connected", "agent", a.id, "agents", len(s.mu.agents))
}

func (s *Server) remove(a *agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.mu.agents {
		if other == a {
			s.mu.agents = append(s.mu.agents[:i:i], s.mu.agents[i+1:]...)
			break
		}
	}
	s.mu.left = time.Now()
	s.config.Metrics.agents(s.config.Strategies, s.mu.agents)
}

const (
	// dialAttempts is the number of agents to try if each disconnects before its response.
	dialAttempts = 3
	// patience is how long a connection waits for an agent if the last one disconnected less than recently ago: it is
	// being replaced, and reconnects within a second or two.
	patience, recently = 5 * time.Second, 30 * time.Second
)

var (
	// errNoAgent has upstream's text.
	errNoAgent = errors.New("No agent available") //lint:ignore ST1005 upstream's text
	errAddress = fmt.Errorf("the address exceeds the limit of %d bytes", maxAddress)
)

// dial requests a connection from an agent. An error is the agent's, errNoAgent, or the end of ctx.
func (s *Server) dial(ctx context.Context, address string) (*link, error) {
	if len(address) > maxAddress {
		return nil, errAddress
	}
	begin := time.Now()
	m := s.config.Metrics
	m.pending.Inc()
	defer m.pending.Dec()
	for attempt := 1; ; attempt++ {
		a, err := s.await(ctx, address)
		if err != nil {
			m.failures.WithLabelValues("no_agent").Inc()
			return nil, err
		}
		l, err := a.dial(ctx, address)
		switch {
		case err == nil:
			m.seconds.Observe(time.Since(begin).Seconds())
			return l, nil
		case errors.Is(err, errAgentGone) && attempt < dialAttempts: // nothing was sent to the address
			continue
		case errors.Is(err, errAgentGone):
			m.failures.WithLabelValues("backend_close").Inc()
		case ctx.Err() != nil:
			m.failures.WithLabelValues("frontend_close").Inc()
		default:
			m.failures.WithLabelValues("error_response").Inc()
		}
		return nil, err
	}
}

// await returns an agent for an address; it may wait for one.
func (s *Server) await(ctx context.Context, address string) (*agent, error) {
	var late <-chan time.Time
	for {
		s.mu.Lock()
		a := choose(s.config.Strategies, s.mu.agents, address)
		changed, left := s.mu.changed, s.mu.left
		s.mu.Unlock()
		if a != nil {
			return a, nil
		}
		if late == nil {
			if left.IsZero() || time.Since(left) > recently {
				return nil, errNoAgent
			}
			timer := time.NewTimer(patience)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-changed:
		case <-late:
			return nil, errNoAgent
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Strategy is how an agent is chosen.
type Strategy string

// The strategies, upstream's.
const (
	Default      Strategy = "default"      // any
	DestHost     Strategy = "destHost"     // one that has the address among its identifiers
	DefaultRoute Strategy = "defaultRoute" // any with default-route=true
)

// ParseStrategies reads --proxy-strategies, a list divided by commas.
func ParseStrategies(text string) (all []Strategy, err error) {
	for name := range strings.SplitSeq(text, ",") {
		switch s := Strategy(name); s {
		case "":
		case Default, DestHost, DefaultRoute:
			all = append(all, s)
		default:
			return nil, fmt.Errorf("unknown proxy strategy: %s", name)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("proxy strategies cannot be empty")
	}
	return all, nil
}

// choose returns an agent for an address by the first strategy that has one, nil if none has. It takes a draining agent
// only if there is no other.
func choose(strategies []Strategy, agents []*agent, address string) *agent {
	host := hostOf(address)
	for _, draining := range []bool{false, true} {
		for _, s := range strategies {
			var fit []*agent
			for _, a := range agents {
				if a.draining.Load() == draining && a.fits(s, host) {
					fit = append(fit, a)
				}
			}
			if len(fit) > 0 {
				return fit[rand.IntN(len(fit))]
			}
		}
	}
	return nil
}

// hostOf returns the host of "host:port".
func hostOf(address string) string {
	if i := strings.LastIndexByte(address, ':'); i >= 0 && !strings.HasSuffix(address, "]") {
		if host := address[:i]; !strings.Contains(host, ":") || strings.HasPrefix(host, "[") {
			address = host
		}
	}
	return strings.Trim(address, "[]")
}
