package schema

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/feature/compat"
)

// histories are releases of projects in the Go module proxy, with the folder of their definitions.
var histories = []struct{ module, folder, versions string }{
	{"sigs.k8s.io/gateway-api", "config/crd/experimental", "v1.0.0 v1.1.0 v1.2.0 v1.3.0 v1.4.0"},
	{"sigs.k8s.io/kueue", "config/components/crd/bases", "v0.8.0 v0.9.0 v0.10.0 v0.14.0"},
	{"sigs.k8s.io/cluster-api", "config/crd/bases", "v1.6.0 v1.7.0 v1.8.0 v1.9.0 v1.10.0 v1.11.0"},
	{"sigs.k8s.io/karpenter", "pkg/apis/crds", "v1.0.0 v1.1.0 v1.2.0 v1.4.0"},
	{"sigs.k8s.io/jobset", "config/components/crd/bases", "v0.4.0 v0.5.0 v0.6.0 v0.7.0 v0.8.0"},
	{"github.com/external-secrets/external-secrets", "config/crds/bases", "v0.9.0 v0.9.20 v0.10.0 v0.12.1"},
	{"github.com/prometheus-operator/prometheus-operator", "example/prometheus-operator-crd",
		"v0.68.0 v0.70.0 v0.72.0 v0.75.0"},
	{"github.com/rabbitmq/cluster-operator/v2", "config/crd/bases", "v2.5.0 v2.7.0 v2.9.0 v2.11.0"},
	{"github.com/crossplane/crossplane", "cluster/crds", "v1.13.0 v1.14.0 v1.15.0 v1.16.0 v1.17.0"},
	{"github.com/kubernetes-csi/external-snapshotter/client/v8", "config/crd", "v8.0.0 v8.2.0"},
	{"github.com/kyverno/kyverno", "config/crds/kyverno", "v1.12.0 v1.12.5"},
}

// TestCrdifyHistories compares the findings for each pair of consecutive releases with crdify's. It downloads the
// releases: make crd-histories.
func TestCrdifyHistories(t *testing.T) {
	if os.Getenv("CRD_HISTORIES") == "" {
		t.Skip("make crd-histories downloads the releases")
	}
	comparators := crdifyComparators(t)
	total, projects := 0, 0
	for _, h := range histories {
		t.Run(h.module, func(t *testing.T) {
			var was definitions
			pairs, seen := 0, map[compat.Class]int{}
			for _, version := range strings.Fields(h.versions) {
				is := release(t, h.module+"@"+version, h.folder)
				for _, name := range slices.Sorted(maps.Keys(is)) {
					if was[name] == nil {
						continue
					}
					pairs++
					for _, f := range compat.Compare(was[name], is[name]) {
						seen[f.Class]++
					}
					total += compareVersions(t, was[name], is[name], comparators)
				}
				if len(is) > 0 {
					was = is
				}
			}
			if t.Logf("%d pairs of definitions: %v", pairs, seen); pairs > 0 {
				projects++
			}
		})
	}
	if t.Logf("%d projects, %d findings alike", projects, total); projects < 10 {
		t.Error("too few projects: the module proxy does not have the releases")
	}
}

// compareVersions compares the findings for the versions that both states have, and returns their number.
func compareVersions(
	t *testing.T, was, is *apiextensionsv1.CustomResourceDefinition,
	comparators []validations.Comparator[apiextensionsv1.JSONSchemaProps],
) (total int) {
	t.Helper()
	for i := range was.Spec.Versions {
		old := &was.Spec.Versions[i]
		now := validations.GetCRDVersionByName(is, old.Name)
		if now == nil {
			continue
		}
		a, b := old.Schema.OpenAPIV3Schema.DeepCopy(), now.Schema.OpenAPIV3Schema.DeepCopy()
		plain(a)
		plain(b)
		ours, theirs := ourChanges(a, b), crdifyChanges(a, b, comparators)
		for c := range ours {
			if !theirs[c] {
				t.Errorf("%s %s: only we find %s", is.Name, old.Name, c)
			}
		}
		for c := range theirs {
			if !ours[c] {
				t.Errorf("%s %s: only crdify finds %s", is.Name, old.Name, c)
			}
		}
		total += len(ours)
	}
	return total
}

// definitions are definitions by name.
type definitions map[string]*apiextensionsv1.CustomResourceDefinition

// release downloads a module and returns the definitions in a folder. The result is empty if the proxy does not have
// the release, or the release does not have the folder.
func release(t *testing.T, module, folder string) definitions {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Logf("%s: %v: %s", module, err, out)
		return nil
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		t.Fatal(err)
	}
	all := definitions{}
	root := filepath.Join(downloaded.Dir, filepath.FromSlash(folder))
	if _, err := os.Stat(root); err != nil {
		t.Log(err)
		return nil
	}
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, part := range strings.Split(string(text), "\n---") {
			def := &apiextensionsv1.CustomResourceDefinition{}
			if yaml.Unmarshal([]byte(part), def) == nil && def.Kind == "CustomResourceDefinition" {
				all[def.Name] = def
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
