package agent

import (
	"errors"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"github.com/bowsprit/bowsprit/internal/net/konnectivity"
)

// Metrics are the metrics of the upstream agent.
type Metrics struct {
	seconds                        prometheus.Histogram
	failures, packets              *prometheus.CounterVec
	sessions, servers, connections prometheus.Gauge
}

// NewMetrics returns metrics in a registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	const prefix = "konnectivity_network_proxy_agent_"
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + name, Help: help})
		registry.MustRegister(g)
		return g
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
		registry.MustRegister(v)
		return v
	}
	m := &Metrics{
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: prefix + "dial_duration_seconds", Help: "Latency of dial to the remote endpoint in seconds",
			Buckets: []float64{0.005, 0.025, 0.1, 0.5, 2.5, 10, 30},
		}),
		failures: counter("endpoint_dial_failure_total",
			"Number of failures dialing the remote endpoint, by reason (example: timeout).", "reason"),
		packets: counter("stream_packets_total",
			"Count of packets processed, by segment and packet type (example: from_client, DIAL_REQ)", "segment",
			"packet_type"),
		sessions:    gauge("open_server_connections", "Current number of open server connections."),
		servers:     gauge("known_server_count", "Current number of servers agent is trying to connect to."),
		connections: gauge("open_endpoint_connections", "Current number of open endpoint connections."),
	}
	registry.MustRegister(m.seconds)
	return m
}

func (m *Metrics) packet(segment string, p *client.Packet) {
	m.packets.WithLabelValues(segment, konnectivity.TypeName(p)).Inc()
}

// failed counts a dial that did.
func (m *Metrics) failed(err error) {
	reason := "unknown"
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		reason = "timeout"
	}
	m.failures.WithLabelValues(reason).Inc()
}
