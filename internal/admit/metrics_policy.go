package admit

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// policyMetrics holds the metrics of both kinds of policies. As in Kubernetes, validating ones are counted if something
// is denied or cannot be evaluated, mutating ones at each mutation.
type policyMetrics struct {
	checks, mutations             *prometheus.CounterVec
	checkDurations, mutationTimes *prometheus.HistogramVec
	mutated                       series[mutationKey, webhookSeries]
	named                         names
}

type mutationKey struct{ policy, binding, problem string }

func newPolicyMetrics(registry prometheus.Registerer) *policyMetrics {
	const validatingPolicy, mutatingPolicy = "validating_admission_policy_", "mutating_admission_policy_"
	buckets := []float64{0.0000005, 0.001, 0.01, 0.1, 1}
	labels := []string{"policy", "policy_binding", "error_type"}
	withAction := []string{"policy", "policy_binding", "error_type", "enforcement_action"}
	m := &policyMetrics{
		checks: counter(validatingPolicy+"check_total",
			"Validation admission policy check total, labeled by policy and further identified by binding and enforcement action taken.", withAction...),
		checkDurations: histogram(validatingPolicy+"check_duration_seconds",
			"Validation admission latency for individual validation expressions in seconds, labeled by policy and further including binding and enforcement action taken.", buckets, withAction...),
		mutations: counter(mutatingPolicy+"check_total",
			"Mutation admission policy check total, labeled by policy and further identified by binding.", labels...),
		mutationTimes: histogram(mutatingPolicy+"check_duration_seconds",
			"Mutation admission latency for individual mutation expressions in seconds, labeled by policy and binding.",
			buckets, labels...),
	}
	m.mutated.make = func(k mutationKey) webhookSeries {
		return webhookSeries{m.mutationTimes.WithLabelValues(k.policy, k.binding, k.problem),
			m.mutations.WithLabelValues(k.policy, k.binding, k.problem)}
	}
	registry.MustRegister(m.checks, m.checkDurations, m.mutations, m.mutationTimes)
	return m
}

// PolicyDecided counts a decision of a validating policy, except for plain consent. action is the consequence: "deny",
// "audit", "warn", or "allow" for an ignored error. took is the time of the expression, 0 if unknown.
func (m *Metrics) PolicyDecided(policy, binding, message, action string, took time.Duration) {
	if m == nil {
		return
	}
	problem := problemOf(message)
	m.policies.checks.WithLabelValues(policy, binding, problem, action).Inc()
	m.policies.checkDurations.WithLabelValues(policy, binding, problem, action).Observe(took.Seconds())
}

// PolicyMutated counts a mutation of a mutating policy. err is nil if it went well.
func (m *Metrics) PolicyMutated(policy, binding string, err error, took time.Duration) {
	if m == nil {
		return
	}
	problem := "no_error"
	if err != nil {
		problem = problemOf(err.Error())
	}
	s := m.policies.mutated.get(mutationKey{policy, binding, problem})
	s.requests.Inc()
	s.duration.Observe(took.Seconds())
}

// problemOf classifies an error by its text, as Kubernetes does. A plain denial is "invalid_error", too.
func problemOf(message string) string {
	switch {
	case strings.HasPrefix(message, "compilation"):
		return "compile_error"
	case strings.HasPrefix(message, "validation failed due to running out of cost budget"):
		return "out_of_budget"
	}
	return "invalid_error"
}

// KeepPolicies drops the series of removed policies and bindings. mutating selects the kind of policies.
func (m *Metrics) KeepPolicies(mutating bool, policies, bindings map[string]bool) {
	if m == nil {
		return
	}
	kind, vectors := validating, []vector{m.policies.checks, m.policies.checkDurations}
	if mutating {
		kind, vectors = admitting, []vector{m.policies.mutations, m.policies.mutationTimes}
	}
	for name := range m.policies.named.replace(kind+" policies", policies) {
		dropSeries(prometheus.Labels{"policy": name}, vectors...)
		if mutating {
			m.policies.mutated.forget(func(k mutationKey) bool { return k.policy == name })
		}
		m.conditions.drop(conditionKey{name: name, kind: "policy"})
	}
	for name := range m.policies.named.replace(kind+" bindings", bindings) {
		dropSeries(prometheus.Labels{"policy_binding": name}, vectors...)
		if mutating {
			m.policies.mutated.forget(func(k mutationKey) bool { return k.binding == name })
		}
	}
}
