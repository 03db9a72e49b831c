package agent

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"github.com/bowsprit/bowsprit/internal/net/konnectivity"
)

// session is the connection to one server.
type session struct {
	agent  *Agent
	server string // its ID
	conn   *grpc.ClientConn
	stream konnectivity.ServerStream
	ctx    context.Context // ends with the session
	end    context.CancelFunc

	sending sync.Mutex
	running sync.WaitGroup // of the goroutines of connections
	mu      struct {
		sync.Mutex
		last    int64 // number of a connection
		far     map[int64]*far
		dials   map[int64]context.CancelFunc // by what tells requests apart
		waiting chan struct{}                // closed when there is no connection any more; nil if none waits
	}
}

// far is a connection to where a server wanted one.
type far struct {
	id    int64
	conn  net.Conn
	queue chan []byte   // for it
	done  chan struct{} // closed when the server wants it closed
	once  sync.Once
}

const (
	// dialTimeout is upstream's.
	dialTimeout = 5 * time.Second
	// queued is how many packets wait for a connection, each of 32 KiB at most.
	queued = 64
	// stallLimit is how long a connection that takes nothing may hold up the others of its server.
	stallLimit = 30 * time.Second
)

// close ends the session at once.
func (s *session) close() {
	s.end()
	_ = s.conn.Close()
}

func (s *session) send(p *client.Packet) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.agent.config.Metrics.packet("from_agent", p)
	return s.stream.Send(p)
}

// serve does what the server wants until the session ends, and returns why it did.
func (s *session) serve() error {
	err := s.receive()
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
		switch p.Type {
		case client.PacketType_DIAL_REQ:
			s.dial(p.GetDialRequest())
		case client.PacketType_DIAL_CLS:
			s.dialled(p.GetCloseDial().GetRandom())
		case client.PacketType_DATA:
			id := p.GetData().GetConnectID()
			if f := s.get(id); f != nil {
				s.give(f, p.GetData().GetData())
			} else {
				s.later(konnectivity.CloseResponse(id, "unrecognized connectID"))
			}
		case client.PacketType_CLOSE_REQ:
			id := p.GetCloseRequest().GetConnectID()
			if f := s.get(id); f != nil {
				f.close()
			} else {
				s.later(konnectivity.CloseResponse(id, "Unknown connectID"))
			}
		}
	}
}

// later sends from another goroutine: the server may wait for this one to read.
func (s *session) later(p *client.Packet) { s.running.Go(func() { _ = s.send(p) }) }

func (s *session) get(id int64) *far {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.far[id]
}

// dial opens a connection in the background, and carries what goes over it.
func (s *session) dial(r *client.DialRequest) {
	ctx, cancel := context.WithTimeout(s.ctx, dialTimeout)
	s.mu.Lock()
	if s.mu.dials == nil {
		s.mu.dials = map[int64]context.CancelFunc{}
	}
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
			if wanted {
				_ = s.send(konnectivity.DialResponse(r.GetRandom(), 0, err.Error()))
			}
		case !wanted:
			_ = conn.Close()
		default:
			m.seconds.Observe(time.Since(begin).Seconds())
			s.carry(conn, r.GetRandom())
		}
	})
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

// carry tells the server of a connection, and sends it what comes from there until it ends.
func (s *session) carry(conn net.Conn, random int64) {
	f := &far{conn: conn, queue: make(chan []byte, queued), done: make(chan struct{})}
	m := s.agent.config.Metrics
	m.connections.Inc()
	defer m.connections.Dec()
	s.mu.Lock()
	s.mu.last++
	f.id = s.mu.last
	s.mu.far[f.id] = f
	s.mu.Unlock()
	if s.ctx.Err() != nil { // serve may have closed all before this one was there
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
	<-wrote // a reader that has ended is no reason to lose what is still to be written
	_ = s.send(konnectivity.CloseResponse(f.id, ""))
}

// drop forgets a connection.
func (s *session) drop(f *far) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.far, f.id)
	s.idleLocked()
}

// idleLocked tells whenIdle.
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

// read sends the server what comes from a connection.
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

// give puts what the server has sent into the queue of a connection.
func (s *session) give(f *far, data []byte) {
	select {
	case f.queue <- data:
		return
	case <-f.done:
		return
	default:
	}
	late := time.NewTimer(stallLimit)
	defer late.Stop()
	select {
	case f.queue <- data:
	case <-f.done:
	case <-s.ctx.Done():
	case <-late.C:
		s.agent.config.Log.Warn("a connection takes nothing; it is closed", "to", f.conn.RemoteAddr())
		_ = f.conn.Close()
	}
}

// close has what is in the queue written, and then the connection closed.
func (f *far) close() { f.once.Do(func() { close(f.done) }) }

// write sends what is in the queue until it is empty and the connection is to be closed.
func (f *far) write() {
	defer f.conn.Close() // ends read, too
	defer f.close()
	for {
		var data []byte
		select {
		case data = <-f.queue:
		default:
			select {
			case data = <-f.queue:
			case <-f.done:
				select {
				case data = <-f.queue: // may have come just before the end
				default:
					return
				}
			}
		}
		if _, err := f.conn.Write(data); err != nil {
			return
		}
	}
}
