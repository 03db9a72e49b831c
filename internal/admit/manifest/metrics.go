package manifest

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are kube-apiserver's about the manifests of all plugins. A nil *Metrics counts nothing.
type Metrics struct {
	reloads *prometheus.CounterVec
	last    *prometheus.GaugeVec
	info    *prometheus.GaugeVec
	server  string // the hash of the server's ID

	mu sync.Mutex // guards the single series that each plugin has in info
}

// NewMetrics returns metrics that registry shows. serverID is the name of the server's identity Lease.
func NewMetrics(registry prometheus.Registerer, serverID string) *Metrics {
	const prefix = "apiserver_manifest_admission_config_controller_"
	m := &Metrics{
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "automatic_reloads_total",
			Help: "Total number of automatic reloads of admission manifest configuration split by status, plugin, and apiserver identity.",
		}, []string{"status", "plugin", "apiserver_id_hash"}),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: prefix + "automatic_reload_last_timestamp_seconds",
			Help: "Timestamp of the last automatic reload of admission manifest configuration split by status, plugin, and apiserver identity.",
		}, []string{"status", "plugin", "apiserver_id_hash"}),
		info: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: prefix + "last_config_info",
			Help: "Information about the last applied admission manifest configuration with hash as label, split by plugin and apiserver identity.",
		}, []string{"plugin", "apiserver_id_hash", "hash"}),
		server: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(serverID))),
	}
	registry.MustRegister(m.reloads, m.last, m.info)
	return m
}

func (m *Metrics) reloaded(plugin string, ok bool, at time.Time) {
	if m == nil {
		return
	}
	status := "failure"
	if ok {
		status = "success"
	}
	m.reloads.WithLabelValues(status, plugin, m.server).Inc()
	m.last.WithLabelValues(status, plugin, m.server).Set(float64(at.UnixNano()) / 1e9)
}

// applied records the files in effect by their hash, "" for none.
func (m *Metrics) applied(plugin, hash string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.info.DeletePartialMatch(prometheus.Labels{"plugin": plugin})
	m.info.WithLabelValues(plugin, m.server, hash).Set(1)
}
