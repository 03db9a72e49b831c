package agent

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
	"github.com/bowsprit/bowsprit/internal/net/konnectivity"
)

// session is the connection to one server.
type session struct {
	agent  *Agent
	server string // its ID
	conn   *grpc.ClientConn
	stream konnectivity.ServerStream
	ctx    context.Context // ends with the session; its cause is the reason
	end    context.CancelCauseFunc

	outbox  *konnectivity.Outbox
	held    konnectivity.Held
	running sync.WaitGroup // of the goroutines of the outbox and of connections
	mu      struct {
		sync.Mutex
		last    int64 // number of a connection
		far     map[int64]*far
		dials   map[int64]context.CancelFunc // by the random number of the request
		waiting chan struct{}                // closed when the last connection ends; nil without a waiter
	}
}

// far is a connection to a destination of the server.
type far struct {
	id    int64
	conn  net.Conn
	queue *konnectivity.Queue // of DATA for it; finished when the server wants the connection closed
	// closing is set when the queue is finished: the rest of it has a time limit.
	closing atomic.Bool
}

const (
	// dialTimeout is upstream's.
	dialTimeout = 5 * time.Second
	// stallLimit is how long a stalled connection may block the others of its server.
	stallLimit = 30 * time.Second
	// maxDials bounds the pending dials for one server, maxFar the open connections. A server that requests more gets
	// an error.
	maxDials, maxFar = 1000, 10_000
)

// close ends the session at once.
func (s *session) close() { s.fail(nil) }

// fail is close with a reason.
func (s *session) fail(why error) {
	s.end(why)
	_ = s.conn.Close()
}

// begin creates the outbox, once the stream exists.
func (s *session) begin() {
	s.outbox = konnectivity.NewOutbox(func(p *client.Packet) error {
		s.agent.config.Metrics.packet("from_agent", p)
		return s.stream.Send(p)
	}, s.ctx.Done(), func() { s.fail(konnectivity.ErrPeerStall) })
}

func (s *session) send(p *client.Packet) error { return s.outbox.Send(s.ctx, p) }

// serve handles the server's packets until the session ends, and returns the reason.
func (s *session) serve() error {
	s.running.Go(s.outbox.Run)
	err := s.receive()
	why := context.Cause(s.ctx)
	if errors.Is(why, konnectivity.ErrPeerStall) || errors.Is(why, konnectivity.ErrPeerFull) {
		err = why
	}
	s.close()
	s.mu.Lock()
	for _, f := range s.mu.far {
		_ = f.conn.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
	return err
}

func (s *session) receive() error {
	for {
		p, err := s.stream.Recv()
		if err != nil {
			return err
		}
		s.agent.config.Metrics.packet("to_agent", p)
		full := false
		switch p.Type {
		case client.PacketType_DIAL_REQ:
			if refusal := s.dial(p.GetDialRequest()); refusal != "" {
				full = !s.outbox.Post(konnectivity.DialResponse(p.GetDialRequest().GetRandom(), 0, refusal))
			}
		case client.PacketType_DIAL_CLS:
			s.dialled(p.GetCloseDial().GetRandom())
		case client.PacketType_DATA:
			id := p.GetData().GetConnectID()
			if f := s.get(id); f != nil {
				s.give(f, p)
			} else {
				full = !s.outbox.Post(konnectivity.CloseResponse(id, "unrecognized connectID"))
			}
		case client.PacketType_CLOSE_REQ:
			id := p.GetCloseRequest().GetConnectID()
			if f := s.get(id); f != nil {
				f.close()
			} else {
				full = !s.outbox.Post(konnectivity.CloseResponse(id, "Unknown connectID"))
			}
		}
		if full {
			return konnectivity.ErrPeerFull
		}
	}
}

func (s *session) get(id int64) *far {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.far[id]
}

// dial opens a connection in the background, and transfers its data. If it refuses, it returns the reason, for the
// server.
func (s *session) dial(r *client.DialRequest) (refusal string) {
	if !strings.HasPrefix(r.GetProtocol(), "tcp") { // the server must not reach sockets of this host
		return "unknown network " + foreign.Cut(r.GetProtocol(), 20)
	}
	s.mu.Lock()
	if _, twice := s.mu.dials[r.GetRandom()]; twice {
		s.mu.Unlock()
		return "this dial is under way already"
	}
	if len(s.mu.dials) >= maxDials || len(s.mu.far)+len(s.mu.dials) >= maxFar {
		s.mu.Unlock()
		return "too many connections"
	}
	ctx, cancel := context.WithTimeout(s.ctx, dialTimeout)
	s.mu.dials[r.GetRandom()] = cancel
	s.mu.Unlock()
	s.running.Go(func() {
		begin := time.Now()
		conn, err := new(net.Dialer).DialContext(ctx, r.GetProtocol(), r.GetAddress())
		wanted := s.dialled(r.GetRandom())
		m := s.agent.config.Metrics
		switch {
		case err != nil:
			m.failed(err)
			// Posted: a goroutine that waited for the server to read would not be counted in maxDials.
			if wanted && !s.outbox.Post(konnectivity.DialResponse(r.GetRandom(), 0, foreign.Text(err.Error()))) {
				s.fail(konnectivity.ErrPeerFull)
			}
		case !wanted:
			_ = conn.Close()
		default:
			m.seconds.Observe(time.Since(begin).Seconds())
			s.carry(conn, r.GetRandom())
		}
	})
	return ""
}

// dialled ends a dial; it reports whether the server still waits for it.
func (s *session) dialled(random int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	cancel := s.mu.dials[random]
	if cancel == nil {
		return false
	}
	cancel()
	delete(s.mu.dials, random)
	s.idleLocked()
	return true
}

// carry reports a connection to the server, and sends it the received data until the connection ends.
func (s *session) carry(conn net.Conn, random int64) {
	f := &far{conn: conn}
	f.queue = konnectivity.NewQueue(&s.held, func() { s.stalled(f) })
	defer f.queue.Discard()
	m := s.agent.config.Metrics
	m.connections.Inc()
	defer m.connections.Dec()
	s.mu.Lock()
	s.mu.last++
	f.id = s.mu.last
	s.mu.far[f.id] = f
	s.mu.Unlock()
	if s.ctx.Err() != nil { // serve may have closed all others before this one existed
		_ = conn.Close()
	}
	defer s.drop(f)
	if s.send(konnectivity.DialResponse(random, f.id, "")) != nil {
		_ = conn.Close()
		return
	}
	wrote := make(chan struct{})
	s.running.Go(func() {
		defer close(wrote)
		f.write()
	})
	s.read(f)
	f.close()
	<-wrote // a reader that has ended is no reason to lose pending writes
	_ = s.send(konnectivity.CloseResponse(f.id, ""))
}

// drop forgets a connection.
func (s *session) drop(f *far) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.far, f.id)
	s.idleLocked()
}

// idleLocked wakes whenIdle.
func (s *session) idleLocked() {
	if len(s.mu.far)+len(s.mu.dials) == 0 && s.mu.waiting != nil {
		close(s.mu.waiting)
		s.mu.waiting = nil
	}
}

// whenIdle returns when there is no connection any more, or the session has ended.
func (s *session) whenIdle() {
	s.mu.Lock()
	if len(s.mu.far)+len(s.mu.dials) == 0 {
		s.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	s.mu.waiting = idle
	s.mu.Unlock()
	select {
	case <-idle:
	case <-s.ctx.Done():
	}
}

// read sends data of a connection to the server.
func (s *session) read(f *far) {
	buf := make([]byte, konnectivity.MaxData)
	for {
		n, err := f.conn.Read(buf)
		if n > 0 && s.send(konnectivity.Data(f.id, buf[:n])) != nil {
			_ = f.conn.Close()
			return
		}
		if err != nil {
			return
		}
	}
}

// give puts DATA of the server into the queue of a connection.
func (s *session) give(f *far, p *client.Packet) {
	if f.queue.Put(p) {
		return
	}
	late := time.NewTimer(stallLimit)
	defer late.Stop()
	for !f.queue.Put(p) {
		select {
		case <-f.queue.Room():
		case <-s.ctx.Done():
			return
		case <-late.C:
			f.queue.Discard()
			s.stalled(f)
			return
		}
	}
}

// stalled closes a connection with a queue that has become too long.
func (s *session) stalled(f *far) {
	s.agent.config.Log.Warn("a connection takes nothing; it is closed", "to", f.conn.RemoteAddr())
	_ = f.conn.Close()
}

// close writes the rest of the queue, and then closes the connection.
func (f *far) close() {
	f.closing.Store(true)
	f.queue.Finish()
	_ = f.conn.SetWriteDeadline(time.Now().Add(stallLimit))
}

// write writes the queue until it is empty and the connection is to be closed.
func (f *far) write() {
	defer f.conn.Close() // ends read, too
	defer f.queue.Discard()
	for {
		p, more := f.queue.Take()
		switch {
		case p != nil:
			if f.closing.Load() {
				_ = f.conn.SetWriteDeadline(time.Now().Add(stallLimit))
			}
			if _, err := f.conn.Write(p.GetData().GetData()); err != nil {
				return
			}
		case !more:
			return
		default:
			<-f.queue.Filled()
		}
	}
}
