package modes

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
)

// metrics are kube's about authorization.
type metrics struct {
	decisions *prometheus.CounterVec

	evaluations, failOpen              *prometheus.CounterVec
	duration                           *prometheus.HistogramVec
	conditionErrors, conditionExcludes *prometheus.CounterVec
	conditionSeconds                   *prometheus.HistogramVec

	// For the file; nil without one.
	reloads    *prometheus.CounterVec
	last, info *prometheus.GaugeVec
	server     string // the hash of the server's ID
}

const prefix = "apiserver_authorization_"

func newMetrics(registry *prometheus.Registry, file bool, serverID string) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
		registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, labels)
		registry.MustRegister(h)
		return h
	}
	m := &metrics{
		decisions: counter("decisions_total",
			"Total number of terminal decisions made by an authorizer split by authorizer type, name, and decision.",
			"type", "name", "decision"),
		evaluations: counter("webhook_evaluations_total", "Round-trips to authorization webhooks.", "name", "result"),
		failOpen: counter("webhook_evaluations_fail_open_total",
			"NoOpinion results due to webhook timeout or error.", "name", "result"),
		duration: histogram("webhook_duration_seconds", "Request latency in seconds.", prometheus.DefBuckets, "name",
			"result"),
		conditionErrors: counter("match_condition_evaluation_errors_total",
			"Total number of errors when an authorization webhook encounters a match condition error split by "+
				"authorizer type and name.", "type", "name"),
		conditionExcludes: counter("match_condition_exclusions_total",
			"Total number of exclusions when an authorization webhook is skipped because match conditions exclude it.",
			"type", "name"),
		conditionSeconds: histogram("match_condition_evaluation_seconds",
			"Authorization match condition evaluation time in seconds, split by authorizer type and name.",
			[]float64{0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25}, "type", "name"),
		server: hash(serverID),
	}
	if file {
		m.registerFile(registry)
	}
	return m
}

func (m *metrics) registerFile(registry *prometheus.Registry) {
	const prefix = "apiserver_authorization_config_controller_"
	m.reloads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: prefix + "automatic_reloads_total",
		Help: "Total number of automatic reloads of authorization configuration split by status and apiserver identity.",
	}, []string{"status", "apiserver_id_hash"})
	m.last = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: prefix + "automatic_reload_last_timestamp_seconds",
		Help: "Timestamp of the last automatic reload of authorization configuration split by status and " +
			"apiserver identity.",
	}, []string{"status", "apiserver_id_hash"})
	m.info = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: prefix + "last_config_info",
		Help: "Information about the last applied authorization configuration with hash as label, split by " +
			"apiserver identity.",
	}, []string{"apiserver_id_hash", "hash"})
	registry.MustRegister(m.reloads, m.last, m.info)
}

func (m *metrics) reloaded(ok bool, at time.Time) {
	status := "failure"
	if ok {
		status = "success"
	}
	m.reloads.WithLabelValues(status, m.server).Inc()
	m.last.WithLabelValues(status, m.server).Set(float64(at.UnixNano()) / 1e9)
}

// applied records the content of the file that is in effect. Calls must be sequential.
func (m *metrics) applied(content string) {
	if m.info == nil {
		return
	}
	m.info.Reset()
	m.info.WithLabelValues(m.server, hash(content)).Set(1)
}

func hash(data string) string {
	if data == "" {
		return ""
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(data)))
}

// counted counts the decisions of a mode. A series exists from its first decision on.
type counted struct {
	authz.Mode
	allowed, denied func() prometheus.Counter
}

func (m *metrics) count(mode authz.Mode, kind, name string) authz.Mode {
	series := func(decision string) func() prometheus.Counter {
		return sync.OnceValue(func() prometheus.Counter { return m.decisions.WithLabelValues(kind, name, decision) })
	}
	return counted{mode, series("allowed"), series("denied")}
}

// Authorize implements authz.Authorizer.
func (c counted) Authorize(ctx context.Context, u user.Info, info *request.Info) (authz.Decision, error) {
	d, err := c.Mode.Authorize(ctx, u, info)
	switch d.Verdict {
	case authz.Allow:
		c.allowed().Inc()
	case authz.Deny:
		c.denied().Inc()
	}
	return d, err
}

// The methods below implement Kubernetes' interface for a webhook's metrics; as in kube-apiserver, single requests are
// not counted.

// RecordRequestTotal does nothing.
func (m *metrics) RecordRequestTotal(context.Context, string) {}

// RecordRequestLatency does nothing.
func (m *metrics) RecordRequestLatency(context.Context, string, float64) {}

// RecordWebhookEvaluation counts a round-trip.
func (m *metrics) RecordWebhookEvaluation(_ context.Context, name, result string) {
	m.evaluations.WithLabelValues(name, result).Inc()
}

// RecordWebhookDuration records the seconds of a round-trip.
func (m *metrics) RecordWebhookDuration(_ context.Context, name, result string, seconds float64) {
	m.duration.WithLabelValues(name, result).Observe(seconds)
}

// RecordWebhookFailOpen counts a webhook that failed and therefore had no opinion.
func (m *metrics) RecordWebhookFailOpen(_ context.Context, name, result string) {
	m.failOpen.WithLabelValues(name, result).Inc()
}

// RecordAuthorizationMatchConditionEvaluation records the duration of evaluating a webhook's match conditions.
func (m *metrics) RecordAuthorizationMatchConditionEvaluation(
	_ context.Context, kind, name string, elapsed time.Duration,
) {
	m.conditionSeconds.WithLabelValues(kind, name).Observe(elapsed.Seconds())
}

// RecordAuthorizationMatchConditionEvaluationFailure counts conditions that could not be evaluated.
func (m *metrics) RecordAuthorizationMatchConditionEvaluationFailure(_ context.Context, kind, name string) {
	m.conditionErrors.WithLabelValues(kind, name).Inc()
}

// RecordAuthorizationMatchConditionExclusion counts webhooks that their conditions left out.
func (m *metrics) RecordAuthorizationMatchConditionExclusion(_ context.Context, kind, name string) {
	m.conditionExcludes.WithLabelValues(kind, name).Inc()
}
