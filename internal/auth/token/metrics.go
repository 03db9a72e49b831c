package token

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// reloadMetrics holds Kubernetes' metrics about the file. Nil counts nothing.
type reloadMetrics struct {
	reloads *prometheus.CounterVec
	last    *prometheus.GaugeVec
	info    *prometheus.GaugeVec
	server  string // the hash of the server's ID

	mu sync.Mutex // guards the single series of info
}

func newReloadMetrics(registry *prometheus.Registry, serverID string) *reloadMetrics {
	const prefix = "apiserver_authentication_config_controller_"
	m := &reloadMetrics{
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "automatic_reloads_total",
			Help: "Total number of automatic reloads of authentication configuration split by status and apiserver identity.",
		}, []string{"status", "apiserver_id_hash"}),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: prefix + "automatic_reload_last_timestamp_seconds",
			Help: "Timestamp of the last automatic reload of authentication configuration split by status and apiserver identity.",
		}, []string{"status", "apiserver_id_hash"}),
		info: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: prefix + "last_config_info",
			Help: "Information about the last applied authentication configuration with hash as label, split by apiserver identity.",
		}, []string{"apiserver_id_hash", "hash"}),
		server: hash(serverID),
	}
	registry.MustRegister(m.reloads, m.last, m.info)
	return m
}

func (m *reloadMetrics) reloaded(ok bool, at time.Time) {
	if m == nil {
		return
	}
	status := "failure"
	if ok {
		status = "success"
	}
	m.reloads.WithLabelValues(status, m.server).Inc()
	m.last.WithLabelValues(status, m.server).Set(float64(at.UnixNano()) / 1e9)
}

// applied records the content that is in effect.
func (m *reloadMetrics) applied(content string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.info.Reset()
	m.info.WithLabelValues(m.server, hash(content)).Set(1)
}

func hash(data string) string {
	if data == "" {
		return ""
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(data)))
}

// LibraryMetrics begin the names of the metrics that the imported authenticators keep in a registry of their own.
func LibraryMetrics() []string {
	return []string{"apiserver_authentication_jwt_", "authentication_token_"}
}
