package server

import (
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/testing/etcdtest"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
)

// TestStorageVersions runs two servers on one etcd. They publish the storage versions of their resources, custom ones
// included, before their first request, and a server's entries disappear with it.
func TestStorageVersions(t *testing.T) {
	t.Parallel()
	etcd := parttest.OpenStore(t, store.Config{Etcd: etcdtest.Config(t)}).ClientURL()
	keys := peerKeys(t)
	config := func(off ...string) config.Config {
		c := peerConfig(t, etcd, keys, off...)
		c.API.RuntimeConfig["internal.apiserver.k8s.io/v1alpha1"] = "true"
		c.API.Features = map[string]bool{"StorageVersionAPI": true}
		return c
	}
	const all = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions"
	servers := func(c coreClient, name string) int {
		return strings.Count(c.text(all+"/"+name), `"apiServerID"`)
	}
	a, _ := runServerOn(t, "a", config())
	if got := servers(a, "apps.deployments"); got != 1 {
		t.Errorf("a server that is ready is said %d times to store Deployments", got)
	}
	a.text("/readyz/poststarthook/built-in-resources-storage-version-updater")
	b, stop := runServerOn(t, "b", config("batch/v1"))
	if got := servers(a, "apps.deployments"); got != 2 {
		t.Errorf("%d servers store Deployments", got)
	}
	if got := servers(b, "batch.jobs"); got != 1 {
		t.Errorf("%d servers serve Jobs", got)
	}

	a.do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"metadata":{"name":"foos.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"foos","kind":"Foo"},"versions":[
		{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, 201)
	has := func(n int) func(int, string) bool {
		return func(code int, body string) bool { return code == 200 && strings.Count(body, `"apiServerID"`) == n }
	}
	foos := a.eventually(all+"/example.com.foos", "", has(2))
	if !strings.Contains(foos, `"commonEncodingVersion":"example.com/v1"`) {
		t.Errorf("the servers agree on no version: %s", foos)
	}
	stop()
	a.eventually(all+"/example.com.foos", "", has(1))
	a.eventually(all+"/apps.deployments", "", has(1))
	a.do("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.example.com", "", 200)
	a.eventually(all+"/example.com.foos", "", func(code int, _ string) bool { return code == 404 })
}
