package oraclebuiltins

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// TestWarnings gives both sides valid objects with many causes for Kubernetes' warnings, and expects the same warnings:
// for a new object, for an update that changes its generation, for an update that does not, and for each subresource.
func TestWarnings(t *testing.T) {
	t.Parallel()
	byKind := map[string]*catalog.Resource{}
	resources := kinds.Resources()
	kinds.Emulation{}.DropDisabled(resources, nil)
	for _, r := range resources {
		if !r.Secondary {
			byKind[r.Kind] = r
		}
	}
	data, err := os.ReadFile("testdata/warned.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i, doc := range strings.Split(string(data), "\n---\n") {
		in, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		obj := tree(t, in)
		kind := obj["kind"].(string)
		t.Run(fmt.Sprintf("%s/%d", kind, i), func(t *testing.T) {
			t.Parallel()
			c := &comparison{t: t, r: byKind[kind], kind: kind}
			c.create(obj)
			if len(c.agreed) > 0 {
				t.Fatalf("not valid: %q", c.agreed)
			}
			status := runtime.DeepCopyJSONValue(obj["status"])
			old := c.stored(obj)
			c.object = "as it is"
			c.update(old, old, "", strategies[kind])
			changed := runtime.DeepCopyJSON(old)
			for path, value := range map[string]any{
				"spec.revisionHistoryLimit": int64(-2), "spec.suspend": true, "spec.paused": true,
				"spec.minReadySeconds": int64(7), "spec.template.metadata.labels.new": "x",
			} {
				fields := strings.Split(path, ".")
				if parent := mapAt(changed, fields[:len(fields)-1]); parent != nil {
					parent[fields[len(fields)-1]] = value
				}
			}
			c.object = "changed"
			c.update(changed, old, "", strategies[kind])
			for _, part := range slices.Sorted(maps.Keys(parts)) {
				if sub, ok := strings.CutPrefix(part, kind+"/"); ok {
					reported := runtime.DeepCopyJSON(old)
					if status != nil {
						reported["status"] = status
					}
					c.update(reported, old, sub, parts[part])
				}
			}
			if len(c.warnings) == 0 {
				t.Error("Kubernetes warns about nothing here")
			}
		})
	}
}

// mapAt returns the map at a path, or nil.
func mapAt(obj map[string]any, path []string) map[string]any {
	for _, name := range path {
		obj, _ = obj[name].(map[string]any)
	}
	return obj
}
