package oraclebuiltins

import (
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/resourceconfig"
	"k8s.io/apiserver/pkg/server/storage"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apiserverinternal/install"
	_ "k8s.io/kubernetes/pkg/apis/authentication/install"
	_ "k8s.io/kubernetes/pkg/apis/authorization/install"
	_ "k8s.io/kubernetes/pkg/apis/extensions/install"
	_ "k8s.io/kubernetes/pkg/apis/imagepolicy/install"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// TestRuntimeConfigKnowsVersions checks that a configuration may name every version for which kube-apiserver has types.
func TestRuntimeConfigKnowsVersions(t *testing.T) {
	for _, gv := range legacyscheme.Scheme.PrioritizedVersionsAllGroups() {
		if err := (kinds.RuntimeConfig{gv.Group + "/" + gv.Version: "true"}).Validate(); err != nil {
			t.Error(err)
		}
	}
}

// TestRuntimeConfigMatchesKubernetes checks that random configurations enable and disable the same kinds as in
// kube-apiserver.
func TestRuntimeConfigMatchesKubernetes(t *testing.T) {
	values := []string{"true", "false"}
	keys := []string{"api/all", "api/ga", "api/beta", "api/alpha"}
	seen := map[string]bool{}
	for _, r := range kinds.Resources() {
		if r.Group == "apiextensions.k8s.io" {
			continue // not in legacyscheme
		}
		for _, v := range r.Versions {
			gv := r.Group + "/" + v.Name
			if !seen[gv] {
				keys = append(keys, gv)
			}
			seen[gv] = true
			keys = append(keys, gv+"/"+r.Plural)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		config := map[string]string{"/v1": "true"}
		for range random.IntN(5) {
			config[keys[random.IntN(len(keys))]] = values[random.IntN(2)]
		}
		theirs := storage.NewResourceConfig()
		resources := kinds.Resources()
		for _, r := range resources {
			for _, v := range r.Versions {
				if gv := (schema.GroupVersion{Group: r.Group, Version: v.Name}); v.Served {
					theirs.EnableVersions(gv)
				} else if !theirs.GroupVersionConfigs[gv] {
					theirs.DisableVersions(gv)
				}
			}
		}
		theirs, err := resourceconfig.MergeAPIResourceConfigs(theirs, config, legacyscheme.Scheme)
		if err != nil {
			t.Fatalf("%v: %v", config, err)
		}
		absent, err := kinds.RuntimeConfig(config).Apply(resources, kinds.Emulation{}, "ClusterTrustBundle",
			"PodCertificateRequest", "GenericWorkload", "StorageVersionMigrator")
		if err != nil || len(absent) > 0 {
			t.Errorf("%v: %v are absent, %v", config, absent, err)
		}
		for _, r := range resources {
			any := slices.ContainsFunc(r.Versions, func(v *catalog.Version) bool { return v.Served })
			if any != r.Served {
				t.Errorf("%v: %s is served: %v", config, r.Qualified(), r.Served)
			}
			if r.Group == "apiextensions.k8s.io" {
				continue
			}
			for _, v := range r.Versions {
				gvr := schema.GroupVersionResource{Group: r.Group, Version: v.Name, Resource: r.Plural}
				want := theirs.ResourceEnabled(gvr)
				if life, ok := v.New().(interface{ APILifecycleRemoved() (major, minor int) }); ok {
					_, minor := life.APILifecycleRemoved()
					want = want && minor > 37 // enabled, and removed at its installation
				}
				if v.Served != want {
					t.Errorf("%v: %s is served: %v, want %v", config, gvr, v.Served, want)
				}
			}
		}
	}
}
