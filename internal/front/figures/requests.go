package figures

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// StoreRequests counts requests to etcd, under kube-apiserver's metric names
// (k8s.io/apiserver/pkg/storage/etcd3/metrics). It is a prometheus.Collector and safe for concurrent use.
type StoreRequests struct {
	durations *prometheus.HistogramVec
	requests  *prometheus.CounterVec
	errors    *prometheus.CounterVec

	mu struct {
		sync.RWMutex
		catalog *catalog.Catalog // nil until Follow
		series  map[storeKey]*storeSeries
	}
}

// storeKey identifies the series of an operation on the objects below a prefix.
type storeKey struct{ operation, prefix string }

type storeSeries struct {
	duration         prometheus.Observer
	requests, errors prometheus.Counter
}

// NewStoreRequests returns metrics without series.
func NewStoreRequests() *StoreRequests {
	labels := []string{"operation", "group", "resource"}
	s := &StoreRequests{
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "etcd_request_duration_seconds",
			Help: "Etcd request latency in seconds for each operation and object type.",
			Buckets: []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20,
				30, 45, 60},
		}, labels),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "etcd_requests_total", Help: "Etcd request counts for each operation and object type.",
		}, labels),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "etcd_request_errors_total", Help: "Etcd failed request counts for each operation and object type.",
		}, labels),
	}
	s.mu.series = map[storeKey]*storeSeries{}
	return s
}

// Follow sets the catalog of kinds. Earlier requests are not counted.
func (s *StoreRequests) Follow(c *catalog.Catalog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.catalog = c
}

// Observe counts an operation on a key, or on the keys that begin with it. Keys of no kind are not counted.
func (s *StoreRequests) Observe(operation, key string, took time.Duration, err error) {
	series := s.find(operation, key)
	if series == nil {
		return
	}
	series.duration.Observe(took.Seconds())
	series.requests.Inc()
	if err != nil {
		series.errors.Inc()
	}
}

// find returns the series of an operation on a key. Prefixes have one or two segments.
func (s *StoreRequests) find(operation, key string) *storeSeries {
	one, rest, _ := strings.Cut(key, "/")
	second, _, _ := strings.Cut(rest, "/")
	two := key[:min(len(key), len(one)+1+len(second))]
	s.mu.RLock()
	found := s.mu.series[storeKey{operation, two}]
	if found == nil {
		found = s.mu.series[storeKey{operation, one}]
	}
	s.mu.RUnlock()
	if found != nil {
		return found
	}
	return s.add(operation, one, two)
}

func (s *StoreRequests) add(operation, one, two string) *storeSeries {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.catalog == nil {
		return nil
	}
	kinds := s.mu.catalog.Snapshot()
	r, prefix := kinds.ByPrefix(two), two
	if r == nil {
		r, prefix = kinds.ByPrefix(one), one
	}
	if r == nil {
		return nil
	}
	key := storeKey{operation, strings.Clone(prefix)}
	found := s.mu.series[key]
	if found == nil {
		found = &storeSeries{
			duration: s.durations.WithLabelValues(operation, r.Group, r.Plural),
			requests: s.requests.WithLabelValues(operation, r.Group, r.Plural),
			errors:   s.errors.WithLabelValues(operation, r.Group, r.Plural),
		}
		s.mu.series[key] = found
	}
	return found
}

// Describe implements prometheus.Collector.
func (s *StoreRequests) Describe(ch chan<- *prometheus.Desc) {
	s.durations.Describe(ch)
	s.requests.Describe(ch)
	s.errors.Describe(ch)
}

// Collect implements prometheus.Collector.
func (s *StoreRequests) Collect(ch chan<- prometheus.Metric) {
	s.durations.Collect(ch)
	s.requests.Collect(ch)
	s.errors.Collect(ch)
}
