// Package storagemetrics shows in metrics how much is stored, by kube-apiserver's names
// (k8s.io/apiserver/pkg/storage/etcd3/metrics).
//
// It stands beside the verbs and is asked only when metrics are scraped: the view knows how many objects a collection
// holds, so nothing is counted on a request's path.
package storagemetrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Census is a prometheus.Collector.
type Census struct {
	Catalog *catalog.Catalog
	View    *watchcache.View
	// Size returns how large the store's database is, in bytes.
	Size func(context.Context) (int64, error)
}

// sizeTimeout bounds the question for the size: a store that does not answer must not take the other metrics with it.
const sizeTimeout = 2 * time.Second

var (
	objects = prometheus.NewDesc("apiserver_resource_objects",
		"Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.", []string{"group", "resource"}, nil)
	byName = prometheus.NewDesc("apiserver_storage_objects",
		"[DEPRECATED, consider using apiserver_resource_objects instead] Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.", []string{"resource"}, nil)
	sizeBytes = prometheus.NewDesc("apiserver_storage_size_bytes",
		"Size of the storage database file physically allocated in bytes.", []string{"storage_cluster_id"}, nil)
)

// Describe names the metrics.
func (c Census) Describe(ch chan<- *prometheus.Desc) {
	ch <- objects
	ch <- byName
	ch <- sizeBytes
}

// Collect counts. Kinds that share their objects (events) count once, under the name by which they are stored.
func (c Census) Collect(ch chan<- prometheus.Metric) {
	kinds := c.Catalog.Snapshot()
	kinds.Resources(func(r *catalog.Resource) {
		if r.Prefix == "" || kinds.ByPrefix(r.Prefix) != r {
			return
		}
		n := float64(c.View.Collection(r.Prefix).Snapshot().Count("", ""))
		ch <- prometheus.MustNewConstMetric(objects, prometheus.GaugeValue, n, r.Group, r.Plural)
		ch <- prometheus.MustNewConstMetric(byName, prometheus.GaugeValue, n,
			schema.GroupResource{Group: r.Group, Resource: r.Plural}.String())
	})
	ctx, cancel := context.WithTimeout(context.Background(), sizeTimeout)
	defer cancel()
	if size, err := c.Size(ctx); err == nil { // as in Kubernetes, which leaves it out
		ch <- prometheus.MustNewConstMetric(sizeBytes, prometheus.GaugeValue, float64(size), "etcd-0")
	}
}
