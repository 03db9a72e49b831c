package front

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// slis are the metrics of /metrics/slis, by which availability is measured: the result of each health check, whenever a
// client requests all checks of an endpoint. Names and labels are Kubernetes'
// (k8s.io/component-base/metrics/prometheus/slis).
type slis struct {
	registry *prometheus.Registry
	last     *prometheus.GaugeVec
	total    *prometheus.CounterVec
}

func newSLIs(started time.Time) *slis {
	s := &slis{
		registry: prometheus.NewRegistry(),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kubernetes_healthcheck", Help: "[STABLE] This metric records the result of a single healthcheck.",
		}, []string{"name", "type"}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubernetes_healthchecks_total", Help: "[STABLE] This metric records the results of all healthcheck.",
		}, []string{"name", "type", "status"}),
	}
	s.registry.MustRegister(s.last, s.total)
	if !started.IsZero() {
		s.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "process_start_time_seconds",
			Help: "[ALPHA] Start time of the process since unix epoch in seconds.",
		}, func() float64 { return float64(started.Unix()) }))
	}
	return s
}

// observe records the result of a check for an endpoint: healthz, livez or readyz.
func (s *slis) observe(check, endpoint string, err error) {
	if err != nil {
		s.last.WithLabelValues(check, endpoint).Set(0)
		s.total.WithLabelValues(check, endpoint, "error").Inc()
		return
	}
	s.last.WithLabelValues(check, endpoint).Set(1)
	s.total.WithLabelValues(check, endpoint, "success").Inc()
}

// serveFigures serves metrics in the text format. started is the start time of the process.
func serveFigures(metrics prometheus.Gatherer, started time.Time) Handler {
	h := promhttp.HandlerFor(metrics, promhttp.HandlerOpts{DisableCompression: true, ProcessStartTime: started})
	return func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) { h.ServeHTTP(w, r) }
}
