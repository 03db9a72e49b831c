package control_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

// moved is a conversion that does something: v2 has the field of v1 under another name.
func moved(_ context.Context, objs []map[string]any, apiVersion string) ([]map[string]any, error) {
	from, to := "old", "new"
	if apiVersion == "stable.example.com/v1" {
		from, to = to, from
	}
	var out []map[string]any
	for _, obj := range objs {
		one := runtime.DeepCopyJSON(obj)
		if v, ok := one[from]; ok && one["apiVersion"] != apiVersion {
			one[to] = v
			delete(one, from)
		}
		one["apiVersion"] = apiVersion
		out = append(out, one)
	}
	return out, nil
}

func withMoved(c *bowsprit.Config) {
	c.Versions.Conversions = map[schema.GroupKind]bowsprit.Conversion{
		{Group: "stable.example.com", Kind: "CronTab"}: moved,
	}
}

func crontabsIn(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{
		Group: controltest.Crontabs.Group, Version: version, Resource: controltest.Crontabs.Resource,
	}
}

// TestStorageVersionUnderLoad changes the storage version back and forth, with migrations, while writers count in both
// versions: no write is lost, and everything can be read in both versions.
func TestStorageVersionUnderLoad(t *testing.T) {
	const objects, writers, counts = 5, 6, 15
	config := testserver.Start(t, withMoved).RESTConfig()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{&controltest.Cluster{T: t, Config: config, Client: client}}
	c.Create(controltest.Definitions, twoVersions("v1"))
	c.fill(objects)
	field := map[string]string{"v1": "old", "v2": "new"}
	increment := func(version, name string) error {
		for {
			obj, err := c.In(crontabsIn(version), "default").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			n, _, _ := unstructured.NestedInt64(obj.Object, field[version])
			obj.Object[field[version]] = n + 1
			if _, err = c.In(crontabsIn(version), "default").Update(t.Context(), obj,
				metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
				return err
			}
		}
	}
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(writers)
	for w := range writers {
		wg.Go(func() {
			defer left.Add(-1)
			for i := range counts * objects {
				if err := increment([]string{"v1", "v2"}[(w+i)%2], fmt.Sprintf("tab-%d", i%objects)); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	changes := 0
	for ; left.Load() > 0 || changes < 4; changes++ {
		c.store([]string{"v2", "v1"}[changes%2])
		name := fmt.Sprintf("m%d", changes)
		c.Create(migrations, migration(name, "stable.example.com", "crontabs"))
		c.untilMigrated(name)
	}
	wg.Wait()
	for _, version := range []string{"v1", "v2"} {
		list, err := c.In(crontabsIn(version), "default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, obj := range list.Items {
			if n, _, _ := unstructured.NestedInt64(obj.Object, field[version]); n != writers*counts {
				t.Errorf("%s in %s counts %d of %d, after %d changes", obj.GetName(), version, n, writers*counts,
					changes)
			}
		}
		if len(list.Items) != objects {
			t.Errorf("%d objects in %s", len(list.Items), version)
		}
	}
}

// BenchmarkMigration migrates 100,000 objects of 1 KiB, and reports the latency of reads and writes of other objects
// before and during it, in milliseconds.
func BenchmarkMigration(b *testing.B) {
	objects := 100_000
	if testing.Short() {
		objects = 10_000
	}
	dir := filepath.Join(b.TempDir(), "data")
	configure := func(c *bowsprit.Config) { withMoved(c); c.DataDir = dir }
	begin := func() (*testserver.Server, *dynamic.DynamicClient) {
		server := testserver.Start(b, configure)
		config := server.RESTConfig()
		config.QPS = -1
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			b.Fatal(err)
		}
		return server, client
	}
	server, client := begin()
	if _, err := client.Resource(controltest.Definitions).Create(b.Context(), twoVersions("v1"),
		metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		b.Fatal(err)
	}
	fill(b, dir, objects)
	_, client = begin()
	probe := func(until func() bool) (median, most time.Duration) {
		var took []time.Duration
		for i := 0; !until(); i++ {
			began := time.Now()
			name := fmt.Sprintf("probe-%d", i%50)
			if _, err := client.Resource(controltest.ConfigMaps).Namespace("default").Create(b.Context(),
				controltest.ConfigMap(name), metav1.CreateOptions{}); err != nil {
				b.Fatal(err)
			}
			if err := client.Resource(controltest.ConfigMaps).Namespace("default").Delete(b.Context(), name,
				metav1.DeleteOptions{}); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(began)/2)
		}
		slices.Sort(took)
		return took[len(took)/2], took[len(took)*99/100]
	}
	n := 0
	beforeMedian, before99 := probe(func() bool { n++; return n > 500 })
	raw, err := json.Marshal(map[string]any{
		"spec": map[string]any{"versions": twoVersions("v2").Object["spec"].(map[string]any)["versions"]},
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := client.Resource(controltest.Definitions).Patch(b.Context(), "crontabs.stable.example.com",
		types.MergePatchType, raw, metav1.PatchOptions{}); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	began := time.Now()
	if _, err := client.Resource(migrations).Create(b.Context(), migration("all", "stable.example.com", "crontabs"),
		metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	var done atomic.Bool
	go func() {
		for !done.Load() {
			m, err := client.Resource(migrations).Get(b.Context(), "all", metav1.GetOptions{})
			done.Store(err != nil || condition(m, "Succeeded") != "" || condition(m, "Failed") != "")
		}
	}()
	median, p99 := probe(done.Load)
	for unit, d := range map[string]time.Duration{
		"before-p50-ms": beforeMedian, "before-p99-ms": before99, "during-p50-ms": median, "during-p99-ms": p99,
	} {
		b.ReportMetric(float64(d.Microseconds())/1000, unit)
	}
	b.ReportMetric(time.Since(began).Seconds(), "s/migration")
}

// fill stores objects as kube-apiserver would, without a server.
func fill(b *testing.B, dir string, objects int) {
	b.Helper()
	s, err := store.Open(b.Context(),
		store.Config{Prefix: "/registry", Etcd: embedded.Config{Dir: filepath.Join(dir, "etcd"), NoSync: true}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 64 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(objects); i = next.Add(1) {
				obj := fmt.Sprintf(
					`{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"tab-%d","namespace":"default","uid":"uid-%d","creationTimestamp":"2026-01-01T00:00:00Z","generation":1},"old":1,"padding":"%01000d"}`, i, i, i)
				if _, err := s.Create(b.Context(), fmt.Sprintf("stable.example.com/crontabs/default/tab-%d", i),
					[]byte(obj)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
