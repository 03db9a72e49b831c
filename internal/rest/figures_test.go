package rest

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// TestWatchFigures puts events of sizes around the bounds into the buckets that a histogram would put them into.
func TestWatchFigures(t *testing.T) {
	t.Parallel()
	f := newFigures()
	call := &verb.Call{Resource: &catalog.Resource{Group: "g", Plural: "cs"}, Version: &catalog.Version{Name: "v1"}}
	same := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "same", Buckets: prometheus.ExponentialBuckets(1024, 2, 8),
	})
	for _, size := range []int{0, 1, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 70000, 131072, 131073, 1 << 20} {
		f.of(call).sent(size)
		same.Observe(float64(size))
	}
	f.sharded(call)
	f.sharded(call)()
	registry := prometheus.NewRegistry()
	registry.MustRegister(f, same)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]*dto.Metric{}
	for _, family := range families {
		got[family.GetName()] = family.Metric[0]
	}
	if n := got["apiserver_watch_events_total"].GetCounter().GetValue(); n != 13 {
		t.Errorf("%v events", n)
	}
	if n := got["apiserver_watch_shards_total"].GetGauge().GetValue(); n != 1 {
		t.Errorf("%v watches of shards", n)
	}
	a, b := got["apiserver_watch_events_sizes"].GetHistogram(), got["same"].GetHistogram()
	if a.GetSampleCount() != b.GetSampleCount() || a.GetSampleSum() != b.GetSampleSum() {
		t.Errorf("%v events with %v bytes", a.GetSampleCount(), a.GetSampleSum())
	}
	for i, bucket := range b.Bucket {
		if mine := a.Bucket[i]; mine.GetUpperBound() != bucket.GetUpperBound() ||
			mine.GetCumulativeCount() != bucket.GetCumulativeCount() {
			t.Errorf("bucket %v, want %v", mine, bucket)
		}
	}
}
