package admit

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// conditionMetrics holds the metrics of match conditions.
type conditionMetrics struct {
	errors, exclusions *prometheus.CounterVec
	durations          *prometheus.HistogramVec
	evaluated          series[conditionKey, prometheus.Observer]
}

// conditionKey identifies the owner of conditions: name and kind ("webhook" or "policy") of the object, and the half of
// admission.
type conditionKey struct {
	name, kind, half string
	operation        Operation
}

func newConditionMetrics(registry prometheus.Registerer) *conditionMetrics {
	labels := []string{"name", "kind", "type", "operation"}
	m := &conditionMetrics{
		errors: counter("admission_match_condition_evaluation_errors_total",
			"Admission match condition evaluation errors count, identified by name of resource containing the match condition and broken out for each kind containing matchConditions (webhook or policy), operation and admission type (validate or admit).", labels...),
		exclusions: counter("admission_match_condition_exclusions_total",
			"Admission match condition evaluation exclusions count, identified by name of resource containing the match condition and broken out for each kind containing matchConditions (webhook or policy), operation and admission type (validate or admit).", labels...),
		durations: histogram("admission_match_condition_evaluation_seconds",
			"Admission match condition evaluation time in seconds, identified by name and broken out for each kind containing matchConditions (webhook or policy), operation and type (validate or admit).",
			[]float64{0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25}, labels...),
	}
	m.evaluated.make = func(k conditionKey) prometheus.Observer {
		return m.durations.WithLabelValues(k.name, k.kind, k.half, string(k.operation))
	}
	registry.MustRegister(m.errors, m.exclusions, m.durations)
	return m
}

// drop removes the series of an object, in one half of admission or, if half is "", in both.
func (m *conditionMetrics) drop(of conditionKey) {
	labels := prometheus.Labels{"name": of.name, "kind": of.kind}
	if of.half != "" {
		labels["type"] = of.half
	}
	dropSeries(labels, m.errors, m.durations)
	if of.half != "" {
		labels["type"] = exclusionType(of.half)
	}
	dropSeries(labels, m.exclusions)
	m.evaluated.forget(func(k conditionKey) bool {
		return k.name == of.name && k.kind == of.kind && (of.half == "" || of.half == k.half)
	})
}

// exclusionType returns Kubernetes' type for exclusions, which are webhooks'.
func exclusionType(half string) string {
	if half == "validating" {
		return validating
	}
	return half
}

// Conditions is the result of the match conditions of one policy or webhook that exclude a write.
type Conditions struct {
	// Name, Kind ("webhook" or "policy") and Type ("admit", "validating", "validate") identify the owner.
	Name, Kind, Type string
	Operation        Operation
	// Errors is the number of conditions that could not be evaluated. Excluded is true if one is false, so that the
	// webhook is not called.
	Errors   int
	Excluded bool
}

// ConditionsEvaluated counts an evaluation of match conditions. As in Kubernetes, successful ones are not counted.
func (m *Metrics) ConditionsEvaluated(c Conditions, took time.Duration) {
	if m == nil {
		return
	}
	k := conditionKey{c.Name, c.Kind, c.Type, c.Operation}
	m.conditions.evaluated.get(k).Observe(took.Seconds())
	if c.Errors > 0 {
		m.conditions.errors.WithLabelValues(k.name, k.kind, k.half, string(k.operation)).Add(float64(c.Errors))
	}
	if c.Excluded {
		m.conditions.exclusions.WithLabelValues(k.name, k.kind, exclusionType(k.half), string(k.operation)).Inc()
	}
}
