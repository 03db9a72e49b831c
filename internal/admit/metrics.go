package admit

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts admission, with the names, labels and buckets of kube-apiserver. A nil *Metrics counts nothing.
//
// Names of webhooks, policies and bindings are labels. Their series are dropped with the objects (KeepWebhooks,
// KeepPolicies), so there are as many as objects. It is safe for concurrent use.
type Metrics struct {
	steps       series[stepKey, step]
	controllers series[stepKey, prometheus.Observer]
	webhooks    *webhookMetrics
	policies    *policyMetrics
	conditions  *conditionMetrics
}

// The values of the label type, one for each half of admission. Validating webhooks are "validating".
const (
	admitting  = "admit"
	validating = "validate"
)

type stepKey struct {
	name, kind string // name is "" for the chain
	operation  Operation
	rejected   bool
}

type step struct{ histogram, summary prometheus.Observer }

// seconds are the buckets of most histograms.
var seconds = []float64{0.005, 0.025, 0.1, 0.5, 1, 2.5}

// NewMetrics returns metrics that registry shows.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	labels := []string{"type", "operation", "rejected"}
	steps := histogram("admission_step_admission_duration_seconds",
		"Admission sub-step latency histogram in seconds, broken out for each operation and API resource and step type (validate or admit).", seconds, labels...)
	summary := prometheus.NewSummaryVec(prometheus.SummaryOpts{
		Namespace: "apiserver", Name: "admission_step_admission_duration_seconds_summary", MaxAge: 5 * time.Hour,
		Help: "Admission sub-step latency summary in seconds, broken out for each operation and API resource and step type (validate or admit).",
	}, labels)
	controllers := histogram("admission_controller_admission_duration_seconds",
		"Admission controller latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
		seconds, append([]string{"name"}, labels...)...)
	registry.MustRegister(steps, summary, controllers)
	m := &Metrics{
		webhooks: newWebhookMetrics(registry), policies: newPolicyMetrics(registry),
		conditions: newConditionMetrics(registry),
	}
	m.steps.make = func(k stepKey) step {
		values := []string{k.kind, string(k.operation), strconv.FormatBool(k.rejected)}
		return step{steps.WithLabelValues(values...), summary.WithLabelValues(values...)}
	}
	m.controllers.make = func(k stepKey) prometheus.Observer {
		return controllers.WithLabelValues(k.name, k.kind, string(k.operation), strconv.FormatBool(k.rejected))
	}
	return m
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "apiserver", Name: name, Help: help, Buckets: buckets,
	}, labels)
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "apiserver", Name: name, Help: help}, labels)
}

// stopwatch measures the parts of one half of admission.
type stopwatch struct {
	m           *Metrics
	kind        string
	operation   Operation
	began, last time.Time
}

func (m *Metrics) start(kind string, op Operation) stopwatch {
	if m == nil {
		return stopwatch{}
	}
	now := time.Now()
	return stopwatch{m, kind, op, now, now}
}

// lap notes that a plugin has ended.
func (w *stopwatch) lap(plugin string, err error) {
	if w.m == nil {
		return
	}
	now := time.Now()
	w.m.controllers.get(stepKey{plugin, w.kind, w.operation, err != nil}).Observe(now.Sub(w.last).Seconds())
	w.last = now
}

// stop notes that all have.
func (w *stopwatch) stop(err error) {
	if w.m == nil {
		return
	}
	took := time.Since(w.began).Seconds()
	s := w.m.steps.get(stepKey{"", w.kind, w.operation, err != nil})
	s.histogram.Observe(took)
	s.summary.Observe(took)
}

// series caches the elements of a vector of metrics by their labels: a lookup there costs an allocation and more time.
type series[K comparable, V any] struct {
	make     func(K) V
	mu       sync.RWMutex
	children map[K]V
}

func (s *series[K, V]) get(k K) V {
	s.mu.RLock()
	v, ok := s.children[k]
	s.mu.RUnlock()
	if ok {
		return v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.children[k]; ok {
		return v
	}
	if s.children == nil {
		s.children = map[K]V{}
	}
	v = s.make(k)
	s.children[k] = v
	return v
}

// forget removes the elements selected by drop.
func (s *series[K, V]) forget(drop func(K) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.children {
		if drop(k) {
			delete(s.children, k)
		}
	}
}

// names holds the names of existing objects with series, by kind of object.
type names struct {
	mu  sync.Mutex
	are map[string]map[string]bool
}

// replace sets the names of a kind and returns the removed ones.
func (n *names) replace(kind string, now map[string]bool) (gone map[string]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	gone = map[string]bool{}
	for name := range n.are[kind] {
		if !now[name] {
			gone[name] = true
		}
	}
	if n.are == nil {
		n.are = map[string]map[string]bool{}
	}
	n.are[kind] = now
	return gone
}

type vector interface{ DeletePartialMatch(prometheus.Labels) int }

// dropSeries removes the series with the given label values from vectors.
func dropSeries(labels prometheus.Labels, vectors ...vector) {
	for _, v := range vectors {
		v.DeletePartialMatch(labels)
	}
}

// codeLabel returns a status code as a label. Codes above 600 share one label, whatever a webhook returns.
func codeLabel(code int32) string { return strconv.Itoa(int(min(code, 600))) }
