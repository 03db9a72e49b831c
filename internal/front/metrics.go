package front

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/bowsprit/bowsprit/internal/request"
)

// metrics are the server's own, with the names, labels and buckets of kube-apiserver, so that dashboards fit.
type metrics struct {
	requests    *prometheus.CounterVec
	durations   *prometheus.HistogramVec
	longRunning *prometheus.GaugeVec
	terminated  *prometheus.CounterVec
	aborted     *prometheus.CounterVec
	handshakes  prometheus.Counter

	// mu guards series. Finding a series in its vector costs an allocation and more time than this map.
	mu     sync.RWMutex
	series map[seriesKey]*series
}

// seriesKey is the labels of a request.
type seriesKey struct {
	verb, dryRun, group, version, resource, subresource, scope string
	code                                                       int
}

type series struct {
	count    prometheus.Counter
	duration prometheus.Observer
}

func newMetrics(registry *prometheus.Registry, reads, writes *limit) *metrics {
	request := []string{"verb", "group", "version", "resource", "subresource", "scope", "component"}
	withDryRun := []string{"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"}
	m := &metrics{
		series: map[seriesKey]*series{},
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_total",
			Help: "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.",
		}, append(withDryRun[:len(withDryRun):len(withDryRun)], "code")),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_request_duration_seconds",
			Help: "Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.",
			Buckets: []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20,
				30, 45, 60},
		}, withDryRun),
		longRunning: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_longrunning_requests",
			Help: "Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and component. Not all requests are tracked this way.",
		}, request),
		terminated: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_terminations_total",
			Help: "Number of requests which apiserver terminated in self-defense.",
		}, append(request[:len(request):len(request)], "code")),
		aborted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_aborts_total",
			Help: "Number of requests which apiserver aborted possibly due to a timeout, for each group, version, verb, resource, subresource and scope",
		}, request[:len(request)-1]),
		handshakes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apiserver_tls_handshake_errors_total",
			Help: "Number of requests dropped with 'TLS handshake error from' error",
		}),
	}
	registry.MustRegister(m.requests, m.durations, m.longRunning, m.terminated, m.aborted, m.handshakes,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for kind, l := range map[string]*limit{"readOnly": reads, "mutating": writes} {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "apiserver_current_inflight_requests",
			Help:        "Number of currently used inflight request limit of this apiserver per request kind.",
			ConstLabels: prometheus.Labels{"request_kind": kind},
		}, func() float64 { return float64(l.now.Load()) }))
	}
	return m
}

// observe counts a finished request.
func (m *metrics) observe(key seriesKey, took time.Duration) {
	m.mu.RLock()
	found := m.series[key]
	m.mu.RUnlock()
	if found == nil {
		found = m.add(key)
	}
	found.count.Inc()
	found.duration.Observe(took.Seconds())
}

func (m *metrics) add(key seriesKey) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.series[key]; found != nil {
		return found
	}
	// The strings are parts of a request's path, which must not be kept in memory for them.
	key.group, key.version, key.resource, key.subresource = strings.Clone(key.group), strings.Clone(key.version),
		strings.Clone(key.resource), strings.Clone(key.subresource)
	added := &series{
		count: m.requests.WithLabelValues(key.verb, key.dryRun, key.group, key.version, key.resource,
			key.subresource, key.scope, component, strconv.Itoa(key.code)),
		duration: m.durations.WithLabelValues(key.verb, key.dryRun, key.group, key.version, key.resource,
			key.subresource, key.scope, component),
	}
	m.series[key] = added
	return added
}

const component = "apiserver"

// labels returns the labels of a request. What it names is only in them if it exists.
func (s *Server) labels(x *exchange) seriesKey {
	info := x.info
	key := seriesKey{dryRun: dryRun(x.r), scope: scopeOf(info), verb: verbLabel(x.r, info)}
	switch {
	case !info.IsResource:
		if s.routes[info.Path] != nil || s.routes[info.Path+"/"] != nil {
			key.subresource = info.Path
		}
	case s.config.Served(info):
		key.group, key.version, key.resource, key.subresource = info.Group, info.Version, info.Resource,
			info.Subresource
	}
	return key
}

func scopeOf(info *request.Info) string {
	switch {
	case info.Name != "" || info.Verb == "create":
		return "resource"
	case info.Namespace != "":
		return "namespace"
	case info.IsResource:
		return "cluster"
	}
	return ""
}

// verbLabel is the HTTP method, told apart where it says too little.
func verbLabel(r *http.Request, info *request.Info) string {
	if info.IsResource {
		switch info.Subresource {
		case "log", "exec", "attach", "portforward", "proxy":
			return "CONNECT"
		}
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		switch {
		case info.Verb == "watch":
			return "WATCH"
		case info.Verb == "list":
			return "LIST"
		}
		return "GET"
	case http.MethodPatch:
		if r.Header.Get("Content-Type") == "application/apply-patch+yaml" {
			return "APPLY"
		}
		return "PATCH"
	case http.MethodPost, http.MethodPut, http.MethodDelete:
		return r.Method
	}
	return "other"
}

func dryRun(r *http.Request) string {
	if !strings.Contains(r.URL.RawQuery, "dryRun") {
		return ""
	}
	values := r.URL.Query()["dryRun"]
	for _, v := range values {
		if v != "All" {
			return "invalid"
		}
	}
	if len(values) == 0 {
		return ""
	}
	return "All"
}
