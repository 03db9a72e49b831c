package core

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/pod-security-admission/api"

	"github.com/bowsprit/bowsprit/internal/admit"
)

// securityMetrics count the decisions of the plugin PodSecurity, with the names and labels of
// k8s.io/pod-security-admission/metrics. A nil one counts nothing.
type securityMetrics struct {
	evaluations, exemptions, errors *prometheus.CounterVec
}

func newSecurityMetrics(registry prometheus.Registerer) *securityMetrics {
	if registry == nil {
		return nil
	}
	kinds := []string{"request_operation", "resource", "subresource"}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(
			prometheus.CounterOpts{Namespace: "pod_security", Name: name, Help: help}, append(labels, kinds...))
	}
	m := &securityMetrics{
		evaluations: counter("evaluations_total",
			"Number of policy evaluations that occurred, not counting ignored or exempt requests.",
			"decision", "policy_level", "policy_version", "mode"),
		exemptions: counter("exemptions_total",
			"Number of exempt requests, not counting ignored or out of scope requests."),
		errors: counter("errors_total",
			"Number of errors preventing normal evaluation. Non-fatal errors may result in the latest restricted profile being used for evaluation.",
			"fatal"),
	}
	registry.MustRegister(m.evaluations, m.exemptions, m.errors)
	for _, operation := range []string{"create", "update"} { // present from the start, as in Kubernetes
		m.evaluations.WithLabelValues("allow", string(api.LevelPrivileged), api.VersionLatest, enforceMode,
			operation, "pod", "")
		m.exemptions.WithLabelValues(operation, "pod", "")
		m.exemptions.WithLabelValues(operation, "controller", "")
	}
	return m
}

// newest is the newest version of policies that counts under its own name.
var newest = api.MajorMinorVersion(1, 36)

// The modes of a policy.
const (
	enforceMode = "enforce"
	auditMode   = "audit"
	warnMode    = "warn"
)

func (m *securityMetrics) evaluated(a *admit.Attributes, allowed bool, of api.LevelVersion, mode string) {
	if m == nil {
		return
	}
	decision, version := "deny", api.VersionLatest
	if allowed {
		decision = "allow"
	}
	switch {
	case of.Version.Latest() || of.Level == api.LevelPrivileged:
	case newest.Older(of.Version):
		version = "future"
	default:
		version = of.Version.String()
	}
	m.evaluations.WithLabelValues(append([]string{decision, string(of.Level), version, mode}, labelsOf(a)...)...).Inc()
}

func (m *securityMetrics) exempted(a *admit.Attributes) {
	if m != nil {
		m.exemptions.WithLabelValues(labelsOf(a)...).Inc()
	}
}

func (m *securityMetrics) failed(a *admit.Attributes, fatal bool) {
	if m != nil {
		m.errors.WithLabelValues(append([]string{strconv.FormatBool(fatal)}, labelsOf(a)...)...).Inc()
	}
}

// labelsOf returns the labels of a write: all kinds but pods and namespaces are controllers.
func labelsOf(a *admit.Attributes) []string {
	resource := "controller"
	if a.Resource.Group == "" && a.Resource.Plural == "pods" {
		resource = "pod"
	}
	return []string{strings.ToLower(string(a.Operation)), resource, a.Subresource}
}
