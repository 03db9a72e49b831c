package server

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"github.com/bowsprit/bowsprit/internal/net/konnectivity"
)

// agent is one that is connected.
type agent struct {
	server   *Server
	id       string
	near     konnectivity.Identifiers
	stream   konnectivity.AgentStream
	sending  sync.Mutex
	draining atomic.Bool
	gone     chan struct{} // closed when nothing more comes from it

	mu struct {
		sync.Mutex
		pending map[int64]chan dialled // by what tells requests apart; each has room for its answer
		links   map[int64]*link        // by the agent's number
		over    bool
	}
}

// dialled is the answer to a request for a connection.
type dialled struct {
	link *link
	err  error
}

var (
	// errAgentGone is what became of a request whose agent went away before it answered.
	errAgentGone = errors.New("the agent went away")
	errClosed    = errors.New("dial closed") // upstream's text
)

func newAgent(s *Server, id string, near konnectivity.Identifiers, stream konnectivity.AgentStream) *agent {
	a := &agent{server: s, id: id, near: near, stream: stream, gone: make(chan struct{})}
	a.mu.pending, a.mu.links = map[int64]chan dialled{}, map[int64]*link{}
	return a
}

// fits reports whether a strategy takes the agent for a host.
func (a *agent) fits(s Strategy, host string) bool {
	switch s {
	case DestHost:
		return slices.Contains(a.near.Hosts, host)
	case DefaultRoute:
		return a.near.DefaultRoute
	}
	return true
}

// send sends a packet. It waits while the agent does not read.
func (a *agent) send(p *client.Packet) error {
	a.sending.Lock()
	defer a.sending.Unlock()
	a.server.config.Metrics.packet("to_agent", p)
	return a.stream.Send(p)
}

// dial asks the agent for a connection.
func (a *agent) dial(ctx context.Context, address string) (*link, error) {
	answer, random := make(chan dialled, 1), rand.Int64()
	a.mu.Lock()
	if a.mu.over {
		a.mu.Unlock()
		return nil, errAgentGone
	}
	a.mu.pending[random] = answer
	a.mu.Unlock()
	if err := a.send(konnectivity.DialRequest(address, random)); err != nil {
		a.forget(random)
		return nil, errAgentGone
	}
	select {
	case d := <-answer:
		return d.link, d.err
	case <-ctx.Done():
	}
	if a.forget(random) {
		_ = a.send(konnectivity.DialClose(random)) // upstream's agents do not know it; what they dial is closed then
	} else if d := <-answer; d.link != nil {
		d.link.close()
	}
	return nil, context.Cause(ctx)
}

// forget reports whether a request was not answered yet; it will not be any more.
func (a *agent) forget(random int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, waits := a.mu.pending[random]
	delete(a.mu.pending, random)
	return waits
}

// receive takes packets until the agent goes.
func (a *agent) receive() error {
	for {
		p, err := a.stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			if status.Code(err) != codes.Canceled {
				a.server.config.Metrics.broken("from_agent", err)
			}
			return err
		}
		a.server.config.Metrics.packet("from_agent", p)
		switch p.Type {
		case client.PacketType_DIAL_RSP:
			a.answered(p.GetDialResponse())
		case client.PacketType_DIAL_CLS:
			a.settle(p.GetCloseDial().GetRandom(), dialled{err: errClosed})
		case client.PacketType_DATA:
			id := p.GetData().GetConnectID()
			if l := a.link(id); l != nil {
				l.deliver(p)
			} else {
				go func() { _ = a.send(konnectivity.CloseRequest(id)) }() // not here: the agent may wait for us to read
			}
		case client.PacketType_CLOSE_RSP:
			if l := a.unlink(p.GetCloseResponse().GetConnectID()); l != nil {
				l.deliver(p)
			}
		case client.PacketType_DRAIN:
			a.draining.Store(true)
			a.server.config.Log.Info("agent drains; it gets no more connections", "agent", a.id)
		}
	}
}

// answered makes a link of a connection that is there.
func (a *agent) answered(r *client.DialResponse) {
	if r.GetError() != "" {
		a.settle(r.GetRandom(), dialled{err: errors.New(r.GetError())})
		return
	}
	l := newLink(a, r.GetConnectID())
	a.mu.Lock()
	a.mu.links[l.id] = l // before it is told of: data may follow at once
	a.mu.Unlock()
	a.server.config.Metrics.established.Inc()
	if !a.settle(r.GetRandom(), dialled{link: l}) {
		a.server.config.Metrics.failures.WithLabelValues("unrecognized_response").Inc()
		go l.close()
	}
}

// settle answers a request; it reports whether there was one.
func (a *agent) settle(random int64, d dialled) bool {
	a.mu.Lock()
	answer := a.mu.pending[random]
	delete(a.mu.pending, random)
	a.mu.Unlock()
	if answer == nil {
		return false
	}
	answer <- d
	return true
}

func (a *agent) link(id int64) *link {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.links[id]
}

func (a *agent) unlink(id int64) *link {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.mu.links[id]
	if l != nil {
		delete(a.mu.links, id)
		a.server.config.Metrics.established.Dec()
	}
	return l
}

// leave ends what the agent had.
func (a *agent) leave() {
	a.mu.Lock()
	pending := a.mu.pending
	a.server.config.Metrics.established.Sub(float64(len(a.mu.links)))
	a.mu.pending, a.mu.links, a.mu.over = map[int64]chan dialled{}, map[int64]*link{}, true
	a.mu.Unlock()
	close(a.gone)
	for _, answer := range pending {
		answer <- dialled{err: errAgentGone}
	}
}

const (
	// queued is how many packets wait for a front; of upstream's agents each has 4 KiB at most, of ours 32.
	queued = 64
	// stallLimit is how long a front that does not read may hold up its agent. Upstream's client gives up after 10 s.
	stallLimit = 30 * time.Second
)

// link is a connection.
type link struct {
	agent    *agent
	id       int64
	received chan *client.Packet // what the agent sends: DATA, and CLOSE_RSP at the end
	done     chan struct{}       // closed when no one takes from received any more
	once     sync.Once
}

func newLink(a *agent, id int64) *link {
	return &link{agent: a, id: id, received: make(chan *client.Packet, queued), done: make(chan struct{})}
}

// deliver hands on what the agent has sent. A front that has not read for stallLimit is closed.
func (l *link) deliver(p *client.Packet) {
	select {
	case l.received <- p:
		return
	case <-l.done:
		return
	default:
	}
	full := l.agent.server.config.Metrics.full.WithLabelValues("Connect")
	full.Inc()
	defer full.Dec()
	late := time.NewTimer(stallLimit)
	defer late.Stop()
	select {
	case l.received <- p:
	case <-l.done:
	case <-late.C:
		l.agent.server.config.Log.Warn("an API server does not read from a connection; it is closed", "agent", l.agent.id,
			"connection", l.id)
		go l.close()
	}
}

// next returns the next packet of the agent's: DATA, or CLOSE_RSP if the connection is closed or the agent has gone;
// nil if ctx has ended or the link is closed.
func (l *link) next(ctx context.Context) *client.Packet {
	select {
	case p := <-l.received:
		return p
	default:
	}
	select {
	case p := <-l.received:
		return p
	case <-l.done:
		return nil
	case <-ctx.Done():
		return nil
	case <-l.agent.gone:
	}
	select { // nothing is added any more
	case p := <-l.received:
		return p
	default:
		return konnectivity.CloseResponse(l.id, "")
	}
}

// close ends the link, and has the agent close the connection if it is still there.
func (l *link) close() {
	l.once.Do(func() { close(l.done) })
	if l.agent.unlink(l.id) != nil {
		_ = l.agent.send(konnectivity.CloseRequest(l.id))
	}
}
