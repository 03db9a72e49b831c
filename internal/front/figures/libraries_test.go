package figures

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"
)

// TestLibraryMetrics checks that only metrics with the given prefixes are shown, with their library's values.
func TestLibraryMetrics(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bowsprit_library_shown_total", "bowsprit_library_hidden_total"} {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: "A test's."}, []string{"by"})
		legacyregistry.RawMustRegister(c)
		c.WithLabelValues("test").Add(3)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(Libraries{"bowsprit_library_shown_", "bowsprit_none_"})
	all, err := registry.Gather()
	if err != nil || len(all) != 1 || all[0].GetName() != "bowsprit_library_shown_total" ||
		all[0].GetHelp() != "A test's." {
		t.Fatalf("%v %v", all, err)
	}
	m := all[0].GetMetric()[0]
	if m.GetCounter().GetValue() != 3 || len(m.GetLabel()) != 1 || m.GetLabel()[0].GetValue() != "test" {
		t.Errorf("%v", m)
	}
}
