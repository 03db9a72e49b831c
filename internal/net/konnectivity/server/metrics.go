package server

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"github.com/bowsprit/bowsprit/internal/net/konnectivity"
)

// Metrics are the metrics of the upstream server.
type Metrics struct {
	seconds, writes                 prometheus.Histogram
	calls, ready, full              *prometheus.GaugeVec
	http, all, pending, established prometheus.Gauge
	failures, packets, errors       *prometheus.CounterVec
}

// NewMetrics returns metrics in a registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	const prefix = "konnectivity_network_proxy_server_"
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
		registry.MustRegister(v)
		return v
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
		registry.MustRegister(v)
		return v
	}
	histogram := func(name, help string) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: prefix + name, Help: help,
			Buckets: []float64{0.000001, 0.00001, 0.0001, 0.005, 0.025, 0.1, 0.5, 2.5, 12.5},
		})
		registry.MustRegister(h)
		return h
	}
	return &Metrics{
		seconds: histogram("dial_duration_seconds", "Latency of dial to the remote endpoint in seconds"),
		writes:  histogram("frontend_write_duration_seconds", "Latency of write to the frontend in seconds"),
		calls: gauge("grpc_connections", "Number of current grpc connections, partitioned by service method.",
			"service_method"),
		http: gauge("http_connections", "Number of current HTTP CONNECT connections").WithLabelValues(),
		all: gauge("ready_backend_connections", "Number of konnectivity agent connected to the proxy server. "+
			"DEPRECATED, please use ready_backends").WithLabelValues(),
		ready: gauge("ready_backends", "Number of konnectivity agent connected to the proxy server", "proxy_strategy"),
		pending: gauge("pending_backend_dials", "Current number of pending backend dial requests").
			WithLabelValues(),
		established: gauge("established_connections",
			"Current number of established end-to-end connections (post-dial).").WithLabelValues(),
		full: gauge("full_receive_channels",
			"Number of current connections blocked by a full receive channel, partitioned by service method.",
			"service_method"),
		failures: counter("dial_failure_count",
			"Number of dial failures observed. Multiple failures can occur for a single dial request.", "reason"),
		packets: counter("stream_packets_total",
			"Count of packets processed, by segment and packet type (example: from_client, DIAL_REQ)", "segment",
			"packet_type"),
		errors: counter("stream_errors_total", "Count of gRPC stream errors, by segment, grpc Code, packet type. "+
			"(example: from_agent, Code.Unavailable, DIAL_RSP)", "segment", "code", "packet_type"),
	}
}

func (m *Metrics) packet(segment string, p *client.Packet) {
	m.packets.WithLabelValues(segment, konnectivity.TypeName(p)).Inc()
}

func (m *Metrics) broken(segment string, err error) {
	m.errors.WithLabelValues(segment, konnectivity.CodeName(err), "Unknown").Inc()
}

// agents sets the number of agents for each strategy.
func (m *Metrics) agents(strategies []Strategy, agents []*agent) {
	m.all.Set(float64(len(agents)))
	for _, s := range strategies {
		n := 0
		for _, a := range agents {
			if s == DestHost {
				n += len(a.near.Hosts)
			} else if a.fits(s, "") {
				n++
			}
		}
		m.ready.WithLabelValues(string(s)).Set(float64(n))
	}
}
