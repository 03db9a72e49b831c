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

	"github.com/bowsprit/bowsprit/internal/net/foreign"
	"github.com/bowsprit/bowsprit/internal/net/konnectivity"
)

// agent is a connected agent.
type agent struct {
	server   *Server
	id       string
	near     konnectivity.Identifiers
	stream   konnectivity.AgentStream
	outbox   *konnectivity.Outbox
	held     konnectivity.Held
	draining atomic.Bool
	gone     chan struct{} // closed when it sends nothing more

	mu struct {
		sync.Mutex
		pending map[int64]chan dialled // by the request's random number; each has room for its response
		links   map[int64]*link        // by the agent's number
		over    bool
	}
}

// dialled is the response to a request for a connection.
type dialled struct {
	link *link
	err  error
}

// Bounds of one agent. An API server that asks for more gets an error.
const (
	maxDials = 1000   // pending dials
	maxLinks = 10_000 // open connections
	// maxAddress bounds the requested address: a DNS name has at most 253 bytes.
	maxAddress = 1024
)

var (
	// errAgentGone is the error of a request if the agent disconnects before its response.
	errAgentGone = errors.New("the agent went away")
	errClosed    = errors.New("dial closed") // upstream's text
	errBusy      = errors.New("the agent has too many connections, or too many that it has not answered yet")
	// errReused drops an agent with ambiguous connections.
	errReused = errors.New("the agent gave a connection the number of another that is open")
)

func newAgent(s *Server, id string, near konnectivity.Identifiers, stream konnectivity.AgentStream) *agent {
	a := &agent{server: s, id: id, near: near, stream: stream, gone: make(chan struct{})}
	a.mu.pending, a.mu.links = map[int64]chan dialled{}, map[int64]*link{}
	conn := konnectivity.PeerOf(stream.Context())
	a.outbox = konnectivity.NewOutbox(a.send, stream.Context().Done(), func() {
		a.dropped(konnectivity.ErrPeerStall)
		conn.Drop()
	})
	return a
}

// dropped logs and counts that the server drops an agent.
func (a *agent) dropped(why error) {
	a.server.config.Metrics.broken("to_agent", status.Error(codes.ResourceExhausted, why.Error()))
	a.server.config.Log.Warn("agent dropped; its connections are closed", "agent", a.id, "reason", why)
}

// fits reports whether a strategy accepts the agent for a host.
func (a *agent) fits(s Strategy, host string) bool {
	switch s {
	case DestHost:
		return slices.Contains(a.near.Hosts, host)
	case DefaultRoute:
		return a.near.DefaultRoute
	}
	return true
}

// send sends a packet. The outbox calls it.
func (a *agent) send(p *client.Packet) error {
	a.server.config.Metrics.packet("to_agent", p)
	return a.stream.Send(p)
}

// dial requests a connection from the agent.
func (a *agent) dial(ctx context.Context, address string) (*link, error) {
	answer, random := make(chan dialled, 1), rand.Int64()
	a.mu.Lock()
	switch {
	case a.mu.over:
		a.mu.Unlock()
		return nil, errAgentGone
	case len(a.mu.pending) >= maxDials, len(a.mu.links)+len(a.mu.pending) >= maxLinks:
		a.mu.Unlock()
		return nil, errBusy
	}
	a.mu.pending[random] = answer
	a.mu.Unlock()
	if !a.outbox.Post(konnectivity.DialRequest(address, random)) {
		a.forget(random)
		return nil, errBusy
	}
	select {
	case d := <-answer:
		return d.link, d.err
	case <-ctx.Done():
	}
	if a.forget(random) {
		// Upstream's agents ignore this packet; the connection is closed once it is open, as it is if the outbox has no
		// room.
		a.outbox.Post(konnectivity.DialClose(random))
	} else if d := <-answer; d.link != nil {
		d.link.close()
	}
	return nil, context.Cause(ctx)
}

// forget reports whether a request was still pending, and removes it.
func (a *agent) forget(random int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, waits := a.mu.pending[random]
	delete(a.mu.pending, random)
	return waits
}

// receive handles packets until the agent disconnects.
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
			if err := a.answered(p.GetDialResponse()); err != nil {
				return err
			}
		case client.PacketType_DIAL_CLS:
			a.settle(p.GetCloseDial().GetRandom(), dialled{err: errClosed})
		case client.PacketType_DATA:
			id := p.GetData().GetConnectID()
			if l := a.link(id); l != nil {
				l.deliver(p)
			} else if !a.outbox.Post(konnectivity.CloseRequest(id)) {
				return konnectivity.ErrPeerFull
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

// answered creates the link of an open connection. An error drops the agent.
func (a *agent) answered(r *client.DialResponse) error {
	if r.GetError() != "" {
		a.settle(r.GetRandom(), dialled{err: errors.New(foreign.Text(r.GetError()))})
		return nil
	}
	id := r.GetConnectID()
	var l *link
	a.mu.Lock()
	_, wanted := a.mu.pending[r.GetRandom()]
	_, used := a.mu.links[id]
	if wanted && !used { // before its dial returns: data may follow at once
		l = newLink(a, id)
		a.mu.links[id] = l
		a.server.config.Metrics.established.Inc()
	}
	a.mu.Unlock()
	switch {
	case used:
		a.settle(r.GetRandom(), dialled{err: errReused})
		return errReused
	case wanted && a.settle(r.GetRandom(), dialled{link: l}):
		return nil
	case wanted: // the API server has given up meanwhile
		l.queue.Discard()
		a.unlink(id)
	}
	a.server.config.Metrics.failures.WithLabelValues("unrecognized_response").Inc()
	if !a.outbox.Post(konnectivity.CloseRequest(id)) {
		return konnectivity.ErrPeerFull
	}
	return nil
}

// settle completes a pending request; it reports whether there was one.
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

// leave ends the links and dials of the agent.
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

// stallLimit is how long a front that does not read may block its agent. Upstream's client gives up after 10 s.
const stallLimit = 30 * time.Second

// link is a connection.
type link struct {
	agent *agent
	id    int64
	queue *konnectivity.Queue // from the agent: DATA, and CLOSE_RSP at the end
}

func newLink(a *agent, id int64) *link {
	l := &link{agent: a, id: id}
	l.queue = konnectivity.NewQueue(&a.held, func() {
		a.server.config.Log.Warn("API servers do not read from connections; the one with the most data is closed",
			"agent", a.id, "connection", id)
		go l.close() // in another goroutine: this one receives from the agent
	})
	return l
}

// deliver hands on a packet of the agent. A front that has not read for stallLimit is closed.
func (l *link) deliver(p *client.Packet) {
	if l.queue.Put(p) {
		return
	}
	full := l.agent.server.config.Metrics.full.WithLabelValues("Connect")
	full.Inc()
	defer full.Dec()
	late := time.NewTimer(stallLimit)
	defer late.Stop()
	for !l.queue.Put(p) {
		select {
		case <-l.queue.Room():
		case <-l.agent.stream.Context().Done():
			return
		case <-late.C:
			l.agent.server.config.Log.Warn("an API server does not read from a connection; it is closed",
				"agent", l.agent.id, "connection", l.id)
			l.queue.Discard()
			go l.close()
			return
		}
	}
}

// next returns the next packet of the agent: DATA, or CLOSE_RSP if the connection is closed or the agent has gone. It
// returns nil if ctx has ended or the link is closed.
func (l *link) next(ctx context.Context) *client.Packet {
	gone := l.agent.gone
	for {
		p, more := l.queue.Take()
		switch {
		case p != nil:
			return p
		case !more:
			return nil
		case gone == nil: // nothing is added any more
			return konnectivity.CloseResponse(l.id, "")
		}
		select {
		case <-l.queue.Filled():
		case <-ctx.Done():
			return nil
		case <-gone:
			gone = nil
		}
	}
}

// close ends the link, and makes the agent close the connection if it is still open.
func (l *link) close() {
	l.queue.Discard()
	if l.agent.unlink(l.id) == nil || l.agent.outbox.Post(konnectivity.CloseRequest(l.id)) {
		return
	}
	// Many end at once, and the agent is behind: this goroutine is the front's, and waits for its turn.
	_ = l.agent.outbox.Send(context.Background(), konnectivity.CloseRequest(l.id))
}
