package admit_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/bowsprit/bowsprit/internal/admit"
)

// counted compares our metrics with Kubernetes' metrics, which belong to the process, over the same time.
type counted struct {
	ours   *prometheus.Registry
	before map[string]float64
}

func count(t *testing.T) (*counted, *admit.Metrics) {
	t.Helper()
	registry := prometheus.NewRegistry()
	return &counted{registry, counts(t, legacyregistry.DefaultGatherer)}, admit.NewMetrics(registry)
}

func (c *counted) compare(t *testing.T, seed int) {
	t.Helper()
	got, want := counts(t, c.ours), counts(t, legacyregistry.DefaultGatherer)
	for key, n := range c.before {
		if want[key] -= n; want[key] == 0 {
			delete(want, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got[key] != want[key] {
			t.Errorf("seed %d: %s is %v, in Kubernetes %v", seed, key, got[key], want[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			t.Errorf("seed %d: %s is %v, in Kubernetes there is none", seed, key, got[key])
		}
	}
}

// counts returns the counters and the numbers of observations of admission, with help, labels and buckets in their
// keys.
func counts(t *testing.T, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "apiserver_admission_") &&
			!strings.Contains(f.GetName(), "admission_policy_") {
			continue
		}
		help := f.GetHelp()
		for _, level := range []string{"[ALPHA] ", "[BETA] ", "[STABLE] "} {
			help = strings.TrimPrefix(help, level)
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			key := fmt.Sprintf("%s %v (%s)", f.GetName(), labels, help)
			if h := m.GetHistogram(); h != nil {
				for _, b := range h.GetBucket() {
					key += fmt.Sprint(" ", b.GetUpperBound())
				}
				out[key] = float64(h.GetSampleCount())
			} else {
				out[key] = m.GetCounter().GetValue()
			}
		}
	}
	return out
}
