package figures

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Libraries collects the metrics that imported libraries count in a registry of their own, by name prefix. That
// registry is process-wide: servers in one test process show each other's values.
type Libraries []string

// Describe implements prometheus.Collector; the metrics are unchecked.
func (Libraries) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (l Libraries) Collect(out chan<- prometheus.Metric) {
	all, _ := legacyregistry.DefaultGatherer.Gather() // an error concerns one metric of many
	for _, family := range all {
		if !slices.ContainsFunc(l, func(begin string) bool { return strings.HasPrefix(family.GetName(), begin) }) {
			continue
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, label.GetName())
			}
			out <- libraryMetric{prometheus.NewDesc(family.GetName(), family.GetHelp(), labels, nil), m}
		}
	}
}

// libraryMetric is a metric as another registry gave it.
type libraryMetric struct {
	desc   *prometheus.Desc
	metric *dto.Metric
}

// Desc implements prometheus.Metric.
func (m libraryMetric) Desc() *prometheus.Desc { return m.desc }

// Write implements prometheus.Metric.
func (m libraryMetric) Write(to *dto.Metric) error {
	to.Label, to.Gauge, to.Counter = m.metric.Label, m.metric.Gauge, m.metric.Counter
	to.Summary, to.Histogram, to.Untyped = m.metric.Summary, m.metric.Histogram, m.metric.Untyped
	return nil
}
