package discovery

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// TestClientGo checks that client-go finds every kind in all its ways: aggregated, one request for each version, and
// with a preference for protobuf.
func TestClientGo(t *testing.T) {
	c := catalog.New(namespaces(), custom("stable.example.com", "crontabs", "CronTab"))
	h := handler()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		h.ServeHTTP(w, r, c.Snapshot())
	}))
	defer server.Close()
	for _, test := range []struct {
		name     string
		config   rest.Config
		legacy   bool
		requests int
	}{
		{name: "aggregated", requests: 2},
		{name: "legacy", legacy: true, requests: 5},
		{
			name: "protobuf",
			config: rest.Config{
				ContentConfig: rest.ContentConfig{
					ContentType:        "application/vnd.kubernetes.protobuf",
					AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
				},
			}, legacy: true, requests: 5,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.config.Host = server.URL
			full, err := discovery.NewDiscoveryClientForConfig(&test.config)
			if err != nil {
				t.Fatal(err)
			}
			var client discovery.DiscoveryInterface = full
			if test.legacy {
				client = full.WithLegacy()
			}
			requests.Store(0)
			groups, err := restmapper.GetAPIGroupResources(client)
			if err != nil {
				t.Fatal(err)
			}
			if n := requests.Load(); n != int64(test.requests) {
				t.Errorf("%d requests, want %d", n, test.requests)
			}
			mapper := restmapper.NewDiscoveryRESTMapper(groups)
			mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "stable.example.com", Kind: "CronTab"})
			if err != nil || mapping.Resource.Version != "v1" || mapping.Scope.Name() != "namespace" {
				t.Errorf("CronTab: %v, %v", mapping, err)
			}
			short := restmapper.NewShortcutExpander(mapper, memory.NewMemCacheClient(client), nil)
			for name, want := range map[string]string{
				"cr": "CronTab", "crontab": "CronTab", "crontabs": "CronTab", "ns": "Namespace",
			} {
				if kind, err := short.KindFor(schema.GroupVersionResource{Resource: name}); err != nil ||
					kind.Kind != want {
					t.Errorf("%s: got %v, %v", name, kind, err)
				}
			}
			all, found := restmapper.NewDiscoveryCategoryExpander(client).Expand("all")
			if !found ||
				!slices.Contains(all, schema.GroupResource{Group: "stable.example.com", Resource: "crontabs"}) {
				t.Errorf("category all: %v", all)
			}
		})
	}
}
