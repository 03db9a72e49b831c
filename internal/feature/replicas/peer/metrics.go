package peer

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// metrics are kube-apiserver's.
type metrics struct {
	rerouted   *prometheus.CounterVec
	errors     *prometheus.CounterVec
	syncErrors *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{
		rerouted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_rerouted_request_total",
			Help: "Requests that another server has answered because this one does not serve the resource; requests " +
				"without a group, version and resource are for its discovery.",
		}, []string{"code", "group", "version", "resource"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_peer_proxy_errors_total",
			Help: "Requests for another server that could not be sent there.",
		}, []string{"type", "group", "version", "resource"}),
		syncErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_peer_discovery_sync_errors_total",
			Help: "Failed requests for the resources of another server.",
		}, []string{"type"}),
	}
}

func (m *metrics) count(code int, r schema.GroupVersionResource) {
	m.rerouted.WithLabelValues(strconv.Itoa(code), r.Group, r.Version, r.Resource).Inc()
}

func (p *peers) collectors() []prometheus.Collector {
	return append(p.published.Collectors(), p.metrics.rerouted, p.metrics.errors, p.metrics.syncErrors)
}
