package kubelet

import "github.com/prometheus/client_golang/prometheus"

// metrics are kube-apiserver's about logs of pods.
type metrics struct {
	insecure *prometheus.CounterVec
	failures prometheus.Counter
}

func newMetrics() *metrics {
	return &metrics{
		insecure: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kube_apiserver_pod_logs_insecure_backend_total",
			Help: "Total number of requests for pods/logs sliced by usage type: enforce_tls, skip_tls_allowed, skip_tls_denied",
		}, []string{"usage"}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kube_apiserver_pod_logs_backend_tls_failure_total",
			Help: "Total number of requests for pods/logs that failed due to kubelet server TLS verification",
		}),
	}
}
