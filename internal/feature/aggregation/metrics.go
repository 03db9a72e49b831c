package aggregation

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/feature/aggregation/leftover"
)

// metrics are kube-aggregator's.
type metrics struct {
	unavailable *prometheus.GaugeVec
	total       *prometheus.CounterVec
	mu          sync.Mutex
	was         map[string]bool // available
}

func newMetrics() *metrics {
	return &metrics{
		unavailable: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "aggregator_unavailable_apiservice",
			Help: "Gauge of APIServices which are marked as unavailable broken down by APIService name.",
		}, []string{"name"}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aggregator_unavailable_apiservice_total",
			Help: "Counter of APIServices which are marked as unavailable broken down by APIService name and reason.",
		}, []string{"name", "reason"}),
		was: map[string]bool{},
	}
}

// set notes how an APIService is.
func (m *metrics) set(name string, s *state) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, known := m.was[name]
	m.was[name] = s.available()
	if s.available() {
		m.unavailable.WithLabelValues(name).Set(0)
		return
	}
	m.unavailable.WithLabelValues(name).Set(1)
	if was || !known {
		m.total.WithLabelValues(name, s.reason).Inc()
	}
}

// setLocal records that this server answers an APIService, or that the APIService is gone.
func (m *metrics) setLocal(name string, there bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.was, name)
	if there {
		m.unavailable.WithLabelValues(name).Set(0)
	} else {
		m.unavailable.DeleteLabelValues(name)
	}
}

// figures are the numbers of namespaces with leftovers, by group.
type figures struct{ ledger *leftover.Ledger }

var leftoverCounts = prometheus.NewDesc("bowsprit_namespace_leftovers",
	"Number of deleted namespaces with objects that a server of the group may still have.", []string{"group"}, nil)

// Describe implements prometheus.Collector.
func (figures) Describe(to chan<- *prometheus.Desc) { to <- leftoverCounts }

// Collect implements prometheus.Collector.
func (f figures) Collect(to chan<- prometheus.Metric) {
	for group, n := range f.ledger.Counts() {
		to <- prometheus.MustNewConstMetric(leftoverCounts, prometheus.GaugeValue, float64(n), group)
	}
}
