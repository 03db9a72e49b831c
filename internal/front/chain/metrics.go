package chain

import (
	"net/http"
	"strings"
	"sync"

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
	slis        *prometheus.HistogramVec
	sizes       *prometheus.HistogramVec
	bodies      *prometheus.HistogramVec
	deprecated  *prometheus.GaugeVec

	filters [request.Phases]prometheus.Observer // never changed; nil for phases without a metric
	// decisions of authorizers
	allowed, denied, noOpinion, failed outcome

	// mu guards series. A lookup in the vector allocates and takes longer than this map.
	mu     sync.RWMutex
	series map[seriesKey]*series
}

func newMetrics(registry *prometheus.Registry, inFlight func(writes bool) int, impersonation string) *metrics {
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
	}
	m.addKinds(registry, request)
	m.addFilters(registry, impersonation)
	registry.MustRegister(m.requests, m.durations, m.longRunning, m.terminated, m.aborted,
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for kind, writes := range map[string]bool{"readOnly": false, "mutating": true} {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "apiserver_current_inflight_requests",
			Help:        "Number of currently used inflight request limit of this apiserver per request kind.",
			ConstLabels: prometheus.Labels{"request_kind": kind},
		}, func() float64 { return float64(inFlight(writes)) }))
	}
	return m
}

// addKinds registers the metrics of each kind, except the number and the duration of requests.
func (m *metrics) addKinds(registry *prometheus.Registry, labels []string) {
	m.slis = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "apiserver_request_sli_duration_seconds",
		Help: "Response latency distribution (not counting webhook duration and priority & fairness queue wait times) in seconds for each verb, group, version, resource, subresource, scope and component.",
		Buckets: []float64{0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45,
			60},
	}, labels)
	m.sizes = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "apiserver_response_sizes",
		Help:    "Response size distribution in bytes for each group, version, verb, resource, subresource, scope and component.",
		Buckets: prometheus.ExponentialBuckets(1000, 10, 7),
	}, labels)
	m.bodies = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "apiserver_request_body_size_bytes",
		Help:    "Apiserver request body size in bytes broken out by resource and verb.",
		Buckets: prometheus.LinearBuckets(50000, 100000, 31),
	}, []string{"group", "resource", "verb"})
	m.deprecated = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "apiserver_requested_deprecated_apis",
		Help: "Gauge of deprecated APIs that have been requested, broken out by API group, version, resource, subresource, and removed_release.",
	}, []string{"group", "version", "resource", "subresource", "removed_release"})
	registry.MustRegister(m.slis, m.sizes, m.bodies, m.deprecated)
}

const component = "apiserver"

// labels returns the labels of a request. Names of nonexistent resources are left out.
func (c *Chain) labels(x *exchange) seriesKey {
	info := x.info
	key := seriesKey{dryRun: dryRun(x.r), scope: scopeOf(info), verb: verbLabel(x.r, info)}
	switch {
	case !info.IsResource:
		if c.behind.HasPath(info.Path) {
			key.subresource = info.Path
		}
	case c.config.Served(info):
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

// verbLabel returns the HTTP method, or a more specific verb.
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
