package crd

import (
	"fmt"
	"runtime"
	"testing"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/test/oracle/fixture"
)

// realDefinitions returns definitions of well-known projects, which are outside of the repository, and one of our own,
// by name.
func realDefinitions(t testing.TB) map[string]map[string]any {
	files := fixture.Files(t)
	files["crontab"] = []byte(cronTab)
	out := map[string]map[string]any{}
	for name, raw := range files {
		if obj := parseDefinition(t, raw); obj != nil {
			out[name] = obj
		}
	}
	return out
}

// each runs f on real definitions and on a large provider's, in parallel. ORACLE_STEP selects every n-th of the latter
// (100th); only some are in memory at once. f may change obj.
func each(t *testing.T, f func(t *testing.T, name string, obj map[string]any)) {
	for name, obj := range realDefinitions(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, name, obj)
		})
	}
	shards := runtime.GOMAXPROCS(0)
	for shard := range shards {
		t.Run(fmt.Sprintf("upjet-%d", shard), func(t *testing.T) {
			t.Parallel()
			i := 0
			fixture.Upjet(t, fixture.Setting("ORACLE_STEP", 100), func(name string, raw []byte) bool {
				if i++; i%shards == shard {
					t.Run(name, func(t *testing.T) { f(t, name, parseDefinition(t, raw)) })
				}
				return true
			})
		})
	}
}

// parseDefinition returns nil if raw, YAML, holds another kind.
func parseDefinition(t testing.TB, raw []byte) map[string]any {
	raw, err := yaml.YAMLToJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	var obj map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &obj); err != nil {
		t.Fatal(err)
	}
	if obj["kind"] != "CustomResourceDefinition" {
		return nil
	}
	return obj
}

const cronTab = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              cronSpec: {type: string, pattern: '^a+$', default: aa}
              image: {type: string}
              replicas: {type: integer, minimum: 1, maximum: 10, default: 1}
              template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
              ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, port: {x-kubernetes-int-or-string: true}}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
`
