package admit

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type webhookMetrics struct {
	durations               *prometheus.HistogramVec
	requests, refused, open *prometheus.CounterVec
	called                  series[WebhookCall, webhookSeries]
	named                   names
}

type webhookSeries struct {
	duration prometheus.Observer
	requests prometheus.Counter
}

func newWebhookMetrics(registry prometheus.Registerer) *webhookMetrics {
	m := &webhookMetrics{
		durations: histogram("admission_webhook_admission_duration_seconds",
			"Admission webhook latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
			append(seconds[:len(seconds):len(seconds)], 10, 25), "name", "type", "operation", "rejected"),
		requests: counter("admission_webhook_request_total",
			"Admission webhook request total, identified by name and broken out for each admission type (validating or admit) and operation. Additional labels specify whether the request was rejected or not and an HTTP status code. Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
			"name", "type", "operation", "code", "rejected"),
		refused: counter("admission_webhook_rejection_count",
			"Admission webhook rejection count, identified by name and broken out for each admission type (validating or admit) and operation. Additional labels specify an error type (calling_webhook_error or apiserver_internal_error if an error occurred; no_error otherwise) and optionally a non-zero rejection code if the webhook rejects the request with an HTTP status code (honored by the apiserver when the code is greater or equal to 400). Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
			"name", "type", "operation", "error_type", "rejection_code"),
		open: counter("admission_webhook_fail_open_count",
			"Admission webhook fail open count, identified by name and broken out for each admission type (validating or admit).", "name", "type"),
	}
	m.called.make = m.series
	registry.MustRegister(m.durations, m.requests, m.refused, m.open)
	return m
}

// WebhookCall holds the labels of one call of an admission webhook.
type WebhookCall struct {
	Name string
	// Type is "admit" for mutating webhooks, "validating" for validating ones.
	Type      string
	Operation Operation
	// Code is the response's code: 200, the code of the refusal, or a substitute for a failed call.
	Code int32
	// Rejected reports whether the call refuses the write.
	Rejected bool
}

// WebhookCalled counts a call. why is the error type of a refusal: "calling_webhook_error", "apiserver_internal_error"
// or "no_error"; "" if it does not count as a refusal.
func (m *Metrics) WebhookCalled(c WebhookCall, took time.Duration, why string) {
	if m == nil {
		return
	}
	c.Code = min(c.Code, 600)
	s := m.webhooks.called.get(c)
	s.requests.Inc()
	s.duration.Observe(took.Seconds())
	if why != "" {
		m.webhooks.refused.WithLabelValues(c.Name, c.Type, string(c.Operation), why, codeLabel(c.Code)).Inc()
	}
}

// WebhookFailedOpen counts a write that continues although a webhook call failed.
func (m *Metrics) WebhookFailedOpen(c WebhookCall) {
	if m != nil {
		m.webhooks.open.WithLabelValues(c.Name, c.Type).Inc()
	}
}

// KeepWebhooks drops the series of removed webhooks of a type (as in WebhookCall).
func (m *Metrics) KeepWebhooks(kind string, names map[string]bool) {
	if m == nil {
		return
	}
	for name := range m.webhooks.named.replace(kind, names) {
		labels := prometheus.Labels{"name": name, "type": kind}
		dropSeries(labels, m.webhooks.durations, m.webhooks.requests, m.webhooks.refused, m.webhooks.open)
		m.webhooks.called.forget(func(c WebhookCall) bool { return c.Name == name && c.Type == kind })
		m.conditions.drop(conditionKey{name: name, kind: "webhook", half: kind})
	}
}

func (m *webhookMetrics) series(c WebhookCall) webhookSeries {
	rejected := strconv.FormatBool(c.Rejected)
	return webhookSeries{
		m.durations.WithLabelValues(c.Name, c.Type, string(c.Operation), rejected),
		m.requests.WithLabelValues(c.Name, c.Type, string(c.Operation), codeLabel(c.Code), rejected),
	}
}
