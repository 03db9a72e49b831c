package convert

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The failures of a call, as Kubernetes' values of the label failure_type.
const (
	callFailure    = "conversion_webhook_call_failure"
	malformedReply = "conversion_webhook_malformed_response_failure"
	partialReply   = "conversion_webhook_partial_response_failure"
	invalidObject  = "conversion_webhook_invalid_converted_object_failure"
)

// metrics holds kube-apiserver's metrics, counted for each webhook call. In Kubernetes a call carries one object.
type metrics struct {
	requests     *prometheus.CounterVec
	durations    *prometheus.HistogramVec
	byDefinition *prometheus.HistogramVec
	hits, misses prometheus.Counter
}

func newMetrics() *metrics {
	result := []string{"result", "failure_type"}
	return &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_conversion_webhook_request_total",
			Help: "Counter for conversion webhook requests with success/failure and failure error type",
		}, result),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_conversion_webhook_duration_seconds",
			Help:    "Conversion webhook request latency",
			Buckets: []float64{0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60},
		}, result),
		byDefinition: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_crd_conversion_webhook_duration_seconds",
			Help:    "CRD webhook conversion duration in seconds",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, []string{"crd_name", "from_version", "to_version", "succeeded"}),
		hits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "bowsprit_conversion_cache_hits_total",
			Help: "Objects in another version than the stored one that were found converted",
		}),
		misses: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "bowsprit_conversion_cache_misses_total",
			Help: "Objects in another version than the stored one that had to be converted",
		}),
	}
}

func (m *metrics) register(registry prometheus.Registerer, c *cache) {
	registry.MustRegister(m.requests, m.durations, m.byDefinition, m.hits, m.misses,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "bowsprit_conversion_cache_bytes",
			Help: "Memory held by converted objects",
		}, func() float64 { return float64(c.size()) }))
}

// observe counts a call. failure is "" if it went well.
func (m *metrics) observe(definition, from, to, failure string, took time.Duration) {
	result := "success"
	if failure != "" {
		result = "failure"
	}
	m.requests.WithLabelValues(result, failure).Inc()
	m.durations.WithLabelValues(result, failure).Observe(took.Seconds())
	m.byDefinition.WithLabelValues(definition, from, to, strconv.FormatBool(failure == "")).Observe(took.Seconds())
}

// count notes where a caller's objects came from.
func (m *metrics) count(jobs []*job) {
	hits, misses := 0, 0
	for _, j := range jobs {
		if j.flight == nil {
			hits++
		} else if j.mine {
			misses++
		}
	}
	m.hits.Add(float64(hits))
	m.misses.Add(float64(misses))
}
