package audit

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
)

// metrics are kube-apiserver's about auditing.
type metrics struct {
	events, rejected prometheus.Counter
	levels           *prometheus.CounterVec
	// ofLevel are the members of levels, in the order of allLevels. Each is made when the first request has its level.
	ofLevel [len(allLevels)]func() prometheus.Counter
}

var allLevels = [...]auditapi.Level{
	auditapi.LevelNone, auditapi.LevelMetadata, auditapi.LevelRequest, auditapi.LevelRequestResponse,
}

func newMetrics() *metrics {
	m := &metrics{
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
	for i, level := range allLevels {
		m.ofLevel[i] = sync.OnceValue(func() prometheus.Counter { return m.levels.WithLabelValues(string(level)) })
	}
	return m
}

// requested counts a request of a level.
func (m *metrics) requested(level auditapi.Level) {
	if i := slices.Index(allLevels[:], level); i >= 0 {
		m.ofLevel[i]().Inc()
	}
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.events, m.rejected, m.levels}
}

// LibraryMetrics returns name prefixes of the metrics that Kubernetes' backends count in their library's own registry:
// the events lost by all servers of the process.
func LibraryMetrics() []string { return []string{"apiserver_audit_error_total"} }
