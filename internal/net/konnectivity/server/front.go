package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"github.com/bowsprit/bowsprit/internal/net/konnectivity"
)

// front is a call of ProxyService.Proxy: one connection of an API server.
type front struct {
	server *Server
	stream client.ProxyService_ProxyServer
	ctx    context.Context
	cancel context.CancelCauseFunc
	// ready is closed when link is set.
	ready chan struct{}
	link  *link
}

// Proxy implements client.ProxyServiceServer.
func (s *Server) Proxy(stream client.ProxyService_ProxyServer) error {
	s.config.Metrics.calls.WithLabelValues("Proxy").Inc()
	defer s.config.Metrics.calls.WithLabelValues("Proxy").Dec()
	if s.fronts.Add(1); s.fronts.Load() > maxFronts {
		s.fronts.Add(-1)
		return status.Error(codes.ResourceExhausted, "too many connections")
	}
	defer s.fronts.Add(-1)
	first, err := stream.Recv()
	if err != nil {
		return ended(err)
	}
	s.config.Metrics.packet("from_client", first)
	f := &front{server: s, stream: stream, ready: make(chan struct{})}
	if first.Type != client.PacketType_DIAL_REQ {
		return f.send(konnectivity.CloseResponse(first.GetData().GetConnectID(), "backend not initialized"))
	}
	f.ctx, f.cancel = context.WithCancelCause(stream.Context())
	defer f.cancel(nil) // ends receive, together with the call
	random := first.GetDialRequest().GetRandom()
	go f.receive(random)
	l, err := s.dial(f.ctx, first.GetDialRequest().GetAddress())
	if err != nil {
		if errors.Is(err, errClosed) || errors.Is(err, errAgentGone) {
			return f.send(konnectivity.DialClose(random))
		}
		return f.send(konnectivity.DialResponse(random, 0, err.Error()))
	}
	defer l.close()
	konnectivity.PeerOf(stream.Context()).Know()
	f.link = l
	close(f.ready)
	if err := f.send(konnectivity.DialResponse(random, l.id, "")); err != nil {
		s.config.Metrics.failures.WithLabelValues("send_rsp").Inc()
		return err
	}
	for {
		p := l.next(f.ctx)
		if p == nil {
			return nil
		}
		if err := f.send(p); err != nil || p.Type == client.PacketType_CLOSE_RSP {
			return err
		}
	}
}

// ended returns the status of a call after its caller has disconnected.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (f *front) send(p *client.Packet) error {
	begin := time.Now()
	f.server.config.Metrics.packet("to_client", p)
	err := f.stream.Send(p)
	f.server.config.Metrics.writes.Observe(time.Since(begin).Seconds())
	return err
}

// receive passes packets of the API server on to the agent, until the call is over.
func (f *front) receive(random int64) {
	for {
		p, err := f.stream.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) { // half-closed; the agent reports when the connection is closed
				f.close()
			} else {
				f.cancel(ended(err))
			}
			return
		}
		f.server.config.Metrics.packet("from_client", p)
		switch p.Type {
		case client.PacketType_DIAL_CLS:
			if p.GetCloseDial().GetRandom() == random {
				f.cancel(errClosed)
			}
		case client.PacketType_CLOSE_REQ:
			f.close() // later packets have no meaning
			return
		case client.PacketType_DATA:
			if !f.established() {
				return
			}
			if p.GetData().GetConnectID() != f.link.id {
				f.cancel(errors.New("mismatched connection IDs"))
				return
			}
			if f.link.agent.outbox.Send(f.ctx, p) != nil {
				return // next returns the end of the agent
			}
		}
	}
}

// established waits for the link.
func (f *front) established() bool {
	select {
	case <-f.ready:
		return true
	case <-f.ctx.Done():
		return false
	}
}

// close makes the agent close the connection; its response is passed on and ends the call.
func (f *front) close() {
	select {
	case <-f.ready:
		if f.link.agent.link(f.link.id) != nil {
			_ = f.link.agent.outbox.Send(f.ctx, konnectivity.CloseRequest(f.link.id))
		}
	default:
		f.cancel(errClosed)
	}
}

// ServeHTTP serves HTTP CONNECT, the other mode of the server.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.config.Metrics.http.Inc()
	defer s.config.Metrics.http.Dec()
	if r.Method != http.MethodConnect {
		http.Error(w, "this proxy only supports CONNECT passthrough", http.StatusMethodNotAllowed)
		return
	}
	if s.fronts.Add(1); s.fronts.Load() > maxFronts {
		s.fronts.Add(-1)
		http.Error(w, "too many connections", http.StatusServiceUnavailable)
		return
	}
	defer s.fronts.Add(-1)
	l, err := s.dial(r.Context(), r.Host)
	if err != nil {
		code, text := connectStatus(err)
		http.Error(w, text, code)
		return
	}
	defer l.close()
	if known, ok := r.Context().Value(connKey{}).(*konnectivity.Conn); ok {
		known.Know()
	}
	conn, in, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection Established\r\n\r\n"); err != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer conn.Close() // ends the copy below
		l.write(ctx, conn)
	}()
	l.read(ctx, in)
	cancel()
	<-over
}

// connectStatus returns the status of a failed dial, as upstream.
func connectStatus(err error) (code int, text string) {
	text = err.Error()
	low := strings.ToLower(text)
	switch {
	case errors.Is(err, errNoAgent):
		return http.StatusInternalServerError, "currently no tunnels available: " + text
	case strings.Contains(low, "timeout"), strings.Contains(low, "deadline exceeded"):
		return http.StatusGatewayTimeout, text
	case strings.Contains(low, "too many open files"):
		return http.StatusServiceUnavailable, text
	}
	return http.StatusBadGateway, text
}

// write writes the agent's data until the connection is closed.
func (l *link) write(ctx context.Context, conn net.Conn) {
	for {
		p := l.next(ctx)
		if p == nil || p.Type != client.PacketType_DATA {
			return
		}
		if _, err := conn.Write(p.GetData().GetData()); err != nil {
			return
		}
	}
}

// read sends an API server's data to the agent until the connection is closed.
func (l *link) read(ctx context.Context, in io.Reader) {
	buf := make([]byte, konnectivity.MaxData)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			if l.agent.outbox.Send(ctx, konnectivity.Data(l.id, buf[:n])) != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Ready returns why the server is not ready, "" if it is: upstream's text.
func (s *Server) Ready() string {
	if s.Agents() == 0 {
		return "no connection to any proxy agent"
	}
	return ""
}
