package egress

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"github.com/bowsprit/bowsprit/internal/net/konnectivity"
)

// tunnelMetrics are the metrics of Kubernetes' client of Konnectivity servers (konnectivity-client,
// pkg/client/metrics). That client counts gRPC connections, one for each tunnelled connection; this one counts calls.
// nil counts nothing.
type tunnelMetrics struct {
	packets, errors, failures *prometheus.CounterVec
	connections               *prometheus.GaugeVec
}

// Where packets go, as seen from the Konnectivity server.
const (
	fromClient = "from_client"
	toClient   = "to_client"
)

// Reasons for a failed dial after the Konnectivity server was reached.
const (
	failedTimeout  = "timeout"  // dialTimeout has passed
	failedContext  = "context"  // the caller no longer waits
	failedEndpoint = "endpoint" // the agent cannot reach the address
	failedClosed   = "dialclosed"
	failedTunnel   = "tunnelclosed" // the call broke
)

// How far a connection is.
const (
	statusCreated = "created" // the Konnectivity server has not answered yet
	statusDialing = "dialing" // the agent has not
	statusOK      = "ok"
	statusClosing = "closing" // closed here, not yet at the other end
)

func newTunnelMetrics(registry *prometheus.Registry) *tunnelMetrics {
	if registry == nil {
		return nil
	}
	const prefix = "konnectivity_network_proxy_client_"
	m := &tunnelMetrics{
		packets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "stream_packets_total",
			Help: "Packets that went through Konnectivity servers, by segment and type.",
		}, []string{"segment", "packet_type"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "stream_errors_total",
			Help: "Calls of Konnectivity servers that broke, by segment, code of gRPC, and type of the packet.",
		}, []string{"segment", "code", "packet_type"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "dial_failure_total",
			Help: "Dials through Konnectivity servers that failed, by reason.",
		}, []string{"reason"}),
		connections: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: prefix + "client_connections",
			Help: "Connections through Konnectivity servers, by status.",
		}, []string{"status"}),
	}
	registry.MustRegister(m.packets, m.errors, m.failures, m.connections)
	return m
}

// failed counts a failed dial. The end of the caller's context takes precedence over its consequences.
func (m *tunnelMetrics) failed(ctx context.Context, reason string) {
	switch {
	case m == nil:
		return
	case errors.Is(context.Cause(ctx), errLate):
		reason = failedTimeout
	case ctx.Err() != nil:
		reason = failedContext
	}
	m.failures.WithLabelValues(reason).Inc()
}

// progress is the state of one connection in a gauge. Late steps of an earlier state change nothing.
type progress struct {
	m  *tunnelMetrics
	at atomic.Pointer[string]
}

func (m *tunnelMetrics) begin() *progress {
	p := &progress{m: m}
	p.to(statusCreated)
	return p
}

// to sets the status of a connection; "" is its end, after which nothing changes.
func (p *progress) to(status string) {
	if p.m == nil {
		return
	}
	for {
		before := p.at.Load()
		if before != nil && *before == "" {
			return
		}
		if !p.at.CompareAndSwap(before, &status) {
			continue
		}
		if before != nil {
			p.m.connections.WithLabelValues(*before).Dec()
		}
		if status != "" {
			p.m.connections.WithLabelValues(status).Inc()
		}
		return
	}
}

// countedStream counts the packets of a call.
type countedStream struct {
	client.ProxyService_ProxyClient
	m *tunnelMetrics
}

// counted returns the call with its packets counted.
func (m *tunnelMetrics) counted(stream client.ProxyService_ProxyClient) client.ProxyService_ProxyClient {
	if m == nil {
		return stream
	}
	return &countedStream{stream, m}
}

// Send implements client.ProxyService_ProxyClient.
func (s *countedStream) Send(p *client.Packet) error {
	s.m.packets.WithLabelValues(fromClient, konnectivity.TypeName(p)).Inc()
	err := s.ProxyService_ProxyClient.Send(p)
	if err != nil && !errors.Is(err, io.EOF) { // EOF means that Recv has the error
		s.m.errors.WithLabelValues(fromClient, konnectivity.CodeName(err), konnectivity.TypeName(p)).Inc()
	}
	return err
}

// Recv implements client.ProxyService_ProxyClient.
func (s *countedStream) Recv() (*client.Packet, error) {
	p, err := s.ProxyService_ProxyClient.Recv()
	switch {
	case err == nil:
		s.m.packets.WithLabelValues(toClient, konnectivity.TypeName(p)).Inc()
	case !errors.Is(err, io.EOF):
		s.m.errors.WithLabelValues(toClient, konnectivity.CodeName(err), "Unknown").Inc()
	}
	return p, err
}
