package egress

import (
	"context"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// proxy is a way through a proxy.
type proxy interface {
	// dial returns a connection to an address, or the failed stage: stageConnect, stageProxy.
	dial(ctx context.Context, address string) (conn net.Conn, failed string, err error)
	// labels are the proxy's labels in metrics.
	labels() (protocol, transport string)
}

// The stages of a dial: to the proxy, and from there to the address.
const (
	stageConnect = "connect"
	stageProxy   = "proxy"
)

// metrics are Kubernetes' metrics about connections through proxies. nil counts nothing.
type metrics struct {
	starts, failures *prometheus.CounterVec
	seconds          *prometheus.HistogramVec
}

func newMetrics(registry *prometheus.Registry) *metrics {
	if registry == nil {
		return nil
	}
	const prefix = "apiserver_egress_dialer_"
	m := &metrics{
		starts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "dial_start_total",
			Help: "Dial starts, labeled by the protocol (http-connect or grpc) and transport (tcp or uds).",
		}, []string{"protocol", "transport"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "dial_failure_count",
			Help: "Dial failure count, labeled by the protocol (http-connect or grpc), transport (tcp or uds), and " +
				"stage (connect or proxy). The stage indicates at which stage the dial failed",
		}, []string{"protocol", "transport", "stage"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "dial_duration_seconds",
			Help: "Dial latency histogram in seconds, labeled by the protocol (http-connect or grpc), transport (tcp " +
				"or uds)",
			Buckets: []float64{0.005, 0.025, 0.1, 0.5, 2.5, 12.5},
		}, []string{"protocol", "transport"}),
	}
	registry.MustRegister(m.starts, m.failures, m.seconds)
	return m
}

// wrap returns a Dial through a proxy that counts, takes at most 30 seconds, as in Kubernetes, and ends with its
// request.
func (m *metrics) wrap(p proxy) Dial {
	protocol, transport := p.labels()
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		ctx, cancel := withCaller(ctx)
		defer cancel()
		begin := time.Now()
		if m != nil {
			m.starts.WithLabelValues(protocol, transport).Inc()
		}
		conn, stage, err := p.dial(ctx, address)
		switch {
		case err != nil && m != nil:
			m.failures.WithLabelValues(protocol, transport, stage).Inc()
		case m != nil:
			m.seconds.WithLabelValues(protocol, transport).Observe(time.Since(begin).Seconds())
		}
		return conn, err
	}
}
