package chain

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
)

// seriesKey is the labels of a request.
type seriesKey struct {
	verb, dryRun, group, version, resource, subresource, scope string
	code                                                       int
}

// series holds the metrics of requests with the same labels.
type series struct {
	count    prometheus.Counter
	duration prometheus.Observer
	// sli is the duration without webhooks and queueing; nil for watches and dry runs.
	sli prometheus.Observer
	// size is the size of responses to reads, body that of request bodies of writes; nil for other requests.
	size, body prometheus.Observer
}

// observe counts a finished request.
func (m *metrics) observe(key seriesKey, x *exchange, took time.Duration) {
	m.mu.RLock()
	found := m.series[key]
	m.mu.RUnlock()
	if found == nil {
		found = m.add(key)
	}
	found.count.Inc()
	found.duration.Observe(took.Seconds())
	if found.sli != nil {
		l := &x.scope.Latency
		others := l.Spent(request.MutatingWebhooks) + l.Spent(request.ValidatingWebhooks) + l.Spent(request.Queue)
		found.sli.Observe((took - others).Seconds())
	}
	if found.size != nil {
		found.size.Observe(float64(x.written))
	}
	if found.body != nil && x.r.ContentLength >= 0 {
		found.body.Observe(float64(x.r.ContentLength))
	}
	if x.scope.Deprecated {
		m.deprecated.WithLabelValues(key.group, key.version, key.resource, key.subresource, x.scope.Removed).Set(1)
	}
}

func (m *metrics) add(key seriesKey) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.series[key]; found != nil {
		return found
	}
	// The strings point into a request's path; cloning them releases the path.
	key.group, key.version, key.resource, key.subresource = strings.Clone(key.group), strings.Clone(key.version),
		strings.Clone(key.resource), strings.Clone(key.subresource)
	added := &series{
		count: m.requests.WithLabelValues(key.verb, key.dryRun, key.group, key.version, key.resource,
			key.subresource, key.scope, component, strconv.Itoa(key.code)),
		duration: m.durations.WithLabelValues(key.verb, key.dryRun, key.group, key.version, key.resource,
			key.subresource, key.scope, component),
	}
	if key.dryRun == "" && key.verb != "WATCH" {
		added.sli = m.slis.WithLabelValues(key.verb, key.group, key.version, key.resource, key.subresource, key.scope,
			component)
	}
	if key.verb == http.MethodGet || key.verb == "LIST" || key.verb == "WATCH" {
		added.size = m.sizes.WithLabelValues(key.verb, key.group, key.version, key.resource, key.subresource,
			key.scope, component)
	}
	if verb := bodyVerb(key); verb != "" && key.resource != "" {
		added.body = m.bodies.WithLabelValues(key.group, key.resource, verb)
	}
	m.series[key] = added
	return added
}

// bodyVerb returns the label for the sizes of request bodies, "" for verbs without one.
func bodyVerb(key seriesKey) string {
	switch key.verb {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch, "APPLY":
		return "patch"
	case http.MethodDelete:
		if key.scope != "resource" {
			return "delete_collection"
		}
		return "delete"
	}
	return ""
}

// spent notes that a request has spent the time since began on a phase, and returns how long that was.
func (c *Chain) spent(x *exchange, p request.Phase, began time.Time) time.Duration {
	return c.took(x, p, c.since(began))
}

// took is spent for a known duration.
func (c *Chain) took(x *exchange, p request.Phase, took time.Duration) time.Duration {
	x.scope.Latency.Spend(p, took)
	if filter := c.metrics.filters[p]; filter != nil {
		filter.Observe(took.Seconds())
	}
	return took
}

// outcome counts one result of authorizers.
type outcome struct {
	attempts prometheus.Counter
	seconds  prometheus.Observer
}

// authorization counts a decision.
func (m *metrics) authorization(d authz.Decision, err error, took time.Duration) {
	o := &m.noOpinion
	switch {
	case d.Allowed():
		o = &m.allowed
	case err != nil:
		o = &m.failed
	case d.Verdict == authz.Deny:
		o = &m.denied
	}
	o.attempts.Inc()
	o.seconds.Observe(took.Seconds())
}

// addFilters registers the durations of steps and the decisions of authorizers. impersonation is the name of that step.
func (m *metrics) addFilters(registry *prometheus.Registry, impersonation string) {
	filters := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "apiserver_request_filter_duration_seconds",
		Help:    "Request filter latency distribution in seconds, for each filter type",
		Buckets: []float64{0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 5, 10, 15, 30},
	}, []string{"filter"})
	attempts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "authorization_attempts_total",
		Help: "Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', 'no-opinion' or 'error'.",
	}, []string{"result"})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "authorization_duration_seconds", Help: "Authorization duration in seconds broken out by result.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
	}, []string{"result"})
	registry.MustRegister(filters, attempts, seconds)
	m.filters = [request.Phases]prometheus.Observer{
		request.Authentication: filters.WithLabelValues("authentication"),
		request.Authorization:  filters.WithLabelValues("authorization"),
		request.Impersonation:  filters.WithLabelValues(impersonation),
		request.Queue:          filters.WithLabelValues("priorityandfairness"),
	}
	result := func(label string) outcome {
		return outcome{attempts.WithLabelValues(label), seconds.WithLabelValues(label)}
	}
	m.allowed, m.denied, m.noOpinion, m.failed = result("allowed"), result("denied"), result("no-opinion"),
		result("error")
}
