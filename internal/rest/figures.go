package rest

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/verb"
)

// figures counts watch events under kube-apiserver's metric names (k8s.io/apiserver/pkg/endpoints/metrics). A server
// may send each event to thousands of watches, so the counters are bare atomics, converted to metrics at each scrape.
type figures struct {
	initial *prometheus.HistogramVec
	// shards counts the watches of shards. apiserver_watch_filtered_events_total has no counterpart: these watches do
	// not wake up for events of other shards.
	shards *prometheus.GaugeVec

	mu    sync.Mutex
	kinds map[kindKey]*watchFigures // guarded by mu
}

type kindKey struct{ group, version, resource string }

// sizeBuckets is the number of buckets for event sizes: 1 KiB, 2 KiB and so on to 128 KiB.
const sizeBuckets = 8

// watchFigures counts the events in watches of one version of a kind.
type watchFigures struct {
	events, bytes atomic.Uint64
	sizes         [sizeBuckets]atomic.Uint64 // number of events by size; larger events are in none
}

var (
	watchEvents = prometheus.NewDesc("apiserver_watch_events_total", "Number of events sent in watch clients",
		[]string{"group", "version", "resource"}, nil)
	watchEventSizes = prometheus.NewDesc("apiserver_watch_events_sizes", "Watch event size distribution in bytes",
		[]string{"group", "version", "resource"}, nil)
)

func newFigures() *figures {
	return &figures{
		kinds: map[kindKey]*watchFigures{},
		initial: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_watch_list_duration_seconds",
			Help:    "Response latency distribution in seconds for watch list requests broken by group, version, resource and scope.",
			Buckets: []float64{0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 15, 20, 30, 45, 60},
		}, []string{"group", "version", "resource", "scope"}),
		shards: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_watch_shards_total",
			Help: "Number of active sharded watch connections broken by resource type.",
		}, []string{"group", "resource"}),
	}
}

// sharded counts a watch of a shard until the function that it returns is called.
func (f *figures) sharded(c *verb.Call) (end func()) {
	watches := f.shards.WithLabelValues(c.Resource.Group, c.Resource.Plural)
	watches.Inc()
	return watches.Dec
}

// of returns the figures of the kind that a call is about.
func (f *figures) of(c *verb.Call) *watchFigures {
	key := kindKey{c.Resource.Group, c.Version.Name, c.Resource.Plural}
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.kinds[key]
	if found == nil {
		found = &watchFigures{}
		f.kinds[key] = found
	}
	return found
}

// sent counts an event.
func (w *watchFigures) sent(size int) {
	w.events.Add(1)
	w.bytes.Add(uint64(size))
	if i := bits.Len(uint(max(size-1, 0) >> 10)); i < sizeBuckets {
		w.sizes[i].Add(1)
	}
}

// observeList records the time that sending a watch's initial state took.
func (f *figures) observeList(c *verb.Call, took time.Duration) {
	scope := "cluster"
	switch {
	case c.Name != "":
		scope = "resource"
	case c.Namespace != "":
		scope = "namespace"
	}
	f.initial.WithLabelValues(c.Resource.Group, c.Version.Name, c.Resource.Plural, scope).Observe(took.Seconds())
}

// Describe implements prometheus.Collector.
func (f *figures) Describe(ch chan<- *prometheus.Desc) {
	f.initial.Describe(ch)
	f.shards.Describe(ch)
	ch <- watchEvents
	ch <- watchEventSizes
}

// Collect implements prometheus.Collector.
func (f *figures) Collect(ch chan<- prometheus.Metric) {
	f.initial.Collect(ch)
	f.shards.Collect(ch)
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, w := range f.kinds {
		sizes, below := make(map[float64]uint64, sizeBuckets), uint64(0)
		for i := range w.sizes {
			below += w.sizes[i].Load()
			sizes[float64(int(1024)<<i)] = below
		}
		events := max(w.events.Load(), below) // an event being counted may be in its bucket only
		ch <- prometheus.MustNewConstMetric(watchEvents, prometheus.CounterValue, float64(events), key.group,
			key.version, key.resource)
		ch <- prometheus.MustNewConstHistogram(watchEventSizes, events, float64(w.bytes.Load()), sizes, key.group,
			key.version, key.resource)
	}
}
