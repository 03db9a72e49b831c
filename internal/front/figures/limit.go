package figures

import (
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// unexpected is Kubernetes' replacement for a label value that is not allowed.
const unexpected = "unexpected"

// limit replaces label values that are not allowed, and merges series that become equal. It returns the number of
// affected observations; each series of a gauge counts as one.
func limit(f *dto.MetricFamily, allow map[string][]string) (replaced uint64) {
	byLabels := map[string]*dto.Metric{}
	kept := f.Metric[:0]
	for _, m := range f.Metric {
		changed := uint64(0)
		for i, l := range m.Label {
			if values, ok := allow[l.GetName()]; ok && !slices.Contains(values, l.GetValue()) {
				if changed == 0 {
					m.Label = slices.Clone(m.Label) // the metric's own
				}
				m.Label[i] = &dto.LabelPair{Name: l.Name, Value: new(unexpected)}
				changed++
			}
		}
		replaced += changed * observations(m)
		key := labelKey(m)
		if same := byLabels[key]; same != nil {
			merge(same, m)
			continue
		}
		byLabels[key] = m
		kept = append(kept, m)
	}
	f.Metric = kept
	return replaced
}

func labelKey(m *dto.Metric) string {
	var b strings.Builder
	for _, l := range m.Label {
		b.WriteString(l.GetName() + "\x00" + l.GetValue() + "\x00")
	}
	return b.String()
}

func observations(m *dto.Metric) uint64 {
	switch {
	case m.Counter != nil:
		return uint64(m.Counter.GetValue())
	case m.Histogram != nil:
		return m.Histogram.GetSampleCount()
	case m.Summary != nil:
		return m.Summary.GetSampleCount()
	}
	return 1
}

// merge adds a series to another one of the same metric. Quantiles cannot be added: into keeps its own.
func merge(into, m *dto.Metric) {
	switch {
	case into.Counter != nil:
		into.Counter.Value = new(into.Counter.GetValue() + m.Counter.GetValue())
	case into.Gauge != nil:
		into.Gauge.Value = new(into.Gauge.GetValue() + m.Gauge.GetValue())
	case into.Summary != nil:
		into.Summary.SampleCount = new(into.Summary.GetSampleCount() + m.Summary.GetSampleCount())
		into.Summary.SampleSum = new(into.Summary.GetSampleSum() + m.Summary.GetSampleSum())
	case into.Histogram != nil:
		a, b := into.Histogram, m.Histogram
		a.SampleCount = new(a.GetSampleCount() + b.GetSampleCount())
		a.SampleSum = new(a.GetSampleSum() + b.GetSampleSum())
		for i := range a.Bucket {
			if i < len(b.Bucket) {
				count := a.Bucket[i].GetCumulativeCount() + b.Bucket[i].GetCumulativeCount()
				a.Bucket[i] = &dto.Bucket{CumulativeCount: &count, UpperBound: a.Bucket[i].UpperBound}
			}
		}
	}
}
