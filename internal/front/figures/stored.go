package figures

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// StoredObjects collects the metrics of the stored objects: their number, size and events, by kind.
type StoredObjects struct {
	Catalog *catalog.Catalog
	View    *watchcache.View
	// Size returns how large the store's database is, in bytes.
	Size func(context.Context) (int64, error)
}

// sizeTimeout limits the query for the size, so that an unresponsive store does not block the other metrics.
const sizeTimeout = 2 * time.Second

var (
	objects = prometheus.NewDesc("apiserver_resource_objects",
		"Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.", []string{"group", "resource"}, nil)
	byName = prometheus.NewDesc("apiserver_storage_objects",
		"[DEPRECATED, consider using apiserver_resource_objects instead] Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.", []string{"resource"}, nil)
	sizeBytes = prometheus.NewDesc("apiserver_storage_size_bytes",
		"Size of the storage database file physically allocated in bytes.", []string{"storage_cluster_id"}, nil)
	unreadable = prometheus.NewDesc("bowsprit_storage_unreadable_objects",
		"Number of stored objects that cannot be decrypted or decoded; kinds without such objects are left out.",
		[]string{"group", "resource"}, nil)
	estimate = prometheus.NewDesc("apiserver_resource_size_estimate_bytes",
		"Estimated size of stored objects in database. Estimate is based on sum of last observed sizes of serialized objects. In case of a fetching error, the value will be -1.", []string{"group", "resource"}, nil)
	received = prometheus.NewDesc("apiserver_watch_cache_events_received_total",
		"Counter of events received in watch cache broken by resource type.", []string{"group", "resource"}, nil)
	fromStore = prometheus.NewDesc("apiserver_storage_events_received_total",
		"Number of etcd events received split by kind.", []string{"group", "resource"}, nil)
	capacity = prometheus.NewDesc("watch_cache_capacity",
		"Total capacity of watch cache broken by resource type.", []string{"group", "resource"}, nil)
)

// Describe names the metrics.
func (c StoredObjects) Describe(ch chan<- *prometheus.Desc) {
	ch <- objects
	ch <- byName
	ch <- sizeBytes
	ch <- unreadable
	ch <- estimate
	ch <- received
	ch <- fromStore
	ch <- capacity
}

// Collect counts the stored objects. Kinds that share their objects (events) count once, under their stored name.
func (c StoredObjects) Collect(ch chan<- prometheus.Metric) {
	kinds := c.Catalog.Snapshot()
	kinds.Resources(func(r *catalog.Resource) {
		if r.Prefix == "" || kinds.ByPrefix(r.Prefix) != r {
			return
		}
		collection := c.View.Collection(r.Prefix)
		all := collection.Snapshot()
		if lost := all.Unreadable(); lost > 0 {
			ch <- prometheus.MustNewConstMetric(unreadable, prometheus.GaugeValue, float64(lost), r.Group, r.Plural)
		}
		n := float64(all.Count("", ""))
		ch <- prometheus.MustNewConstMetric(objects, prometheus.GaugeValue, n, r.Group, r.Plural)
		_, size := all.Weigh("")
		ch <- prometheus.MustNewConstMetric(estimate, prometheus.GaugeValue, float64(size), r.Group, r.Plural)
		events, slots := collection.History()
		for _, desc := range []*prometheus.Desc{received, fromStore} {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(events), r.Group, r.Plural)
		}
		ch <- prometheus.MustNewConstMetric(capacity, prometheus.GaugeValue, float64(slots), r.Group, r.Plural)
		ch <- prometheus.MustNewConstMetric(byName, prometheus.GaugeValue, n,
			schema.GroupResource{Group: r.Group, Resource: r.Plural}.String())
	})
	ctx, cancel := context.WithTimeout(context.Background(), sizeTimeout)
	defer cancel()
	if size, err := c.Size(ctx); err == nil { // on error omitted, as in Kubernetes
		ch <- prometheus.MustNewConstMetric(sizeBytes, prometheus.GaugeValue, float64(size), "etcd-0")
	}
}
