package audit

import "github.com/prometheus/client_golang/prometheus"

// metrics are kube-apiserver's about auditing.
type metrics struct {
	events, rejected prometheus.Counter
	levels           *prometheus.CounterVec
}

func newMetrics() metrics {
	return metrics{
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apiserver_audit_event_total",
			Help: "Counter of audit events generated and sent to the audit backend.",
		}),
		rejected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apiserver_audit_requests_rejected_total",
			Help: "Counter of apiserver requests rejected due to an error in audit logging backend.",
		}),
		levels: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_audit_level_total",
			Help: "Counter of policy levels for audit events (1 per request).",
		}, []string{"level"}),
	}
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.events, m.rejected, m.levels}
}

// LibraryMetrics begin the names of what Kubernetes' backends count, which they do in a registry of their library's
// own: the events that all servers of the process have lost.
func LibraryMetrics() []string { return []string{"apiserver_audit_error_total"} }
