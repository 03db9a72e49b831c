package figures

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// TestStoredObjects counts the objects in a store: kinds that share their objects count once, and kinds without objects
// appear.
func TestStoredObjects(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	st, err := store.Open(t.Context(),
		store.Config{Etcd: memory.New(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	for _, key := range []string{"configmaps/a/1", "configmaps/a/2", "configmaps/b/1", "events/a/1", "leases/a/1"} {
		if _, err := st.Create(t.Context(), key, []byte(`{"metadata":{"name":"1","uid":"1"}}`)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.Create(t.Context(), "configmaps/b/2", []byte("k8s:enc:secretbox:v1:a:x")); err != nil {
		t.Fatal(err)
	}
	view := watchcache.New(st, watchcache.Options{Log: log})
	if err := view.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	var broken error
	registry := prometheus.NewRegistry()
	registry.MustRegister(StoredObjects{Catalog: catalog.New(kinds.Resources()...), View: view,
		Size: func(context.Context) (int64, error) { return 4096, broken }})
	figures := gather(t, registry)
	for name, want := range map[string]float64{
		`apiserver_resource_objects group= resource=configmaps`:                4,
		`bowsprit_storage_unreadable_objects group= resource=configmaps`:       1,
		`apiserver_resource_objects group=coordination.k8s.io resource=leases`: 1,
		`apiserver_resource_objects group= resource=events`:                    1,
		`apiserver_resource_objects group= resource=pods`:                      0,
		`apiserver_storage_objects resource=leases.coordination.k8s.io`:        1,
		`apiserver_storage_objects resource=configmaps`:                        4,
	} {
		if got, ok := figures[name]; !ok || got != want {
			t.Errorf("%s: %v, %v; want %v", name, got, ok, want)
		}
	}
	const size = `apiserver_storage_size_bytes storage_cluster_id=etcd-0`
	if figures[size] != 4096 {
		t.Errorf("size %v", figures[size])
	}
	for _, none := range []string{`bowsprit_storage_unreadable_objects group= resource=events`,
		`apiserver_resource_objects group=events.k8s.io resource=events`,
		`apiserver_resource_objects group=authorization.k8s.io resource=subjectaccessreviews`} {
		if n, there := figures[none]; there {
			t.Errorf("%s: %v", none, n)
		}
	}
	broken = errors.New("no answer")
	if figures = gather(t, registry); len(figures) == 0 || figures[size] != 0 {
		t.Errorf("a store that does not answer: %v", figures)
	}
}

// gather returns the values by name and labels.
func gather(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += fmt.Sprintf(" %s=%s", label.GetName(), label.GetValue())
			}
			out[name] = m.GetGauge().GetValue()
		}
	}
	return out
}
