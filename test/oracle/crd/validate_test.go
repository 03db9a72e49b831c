package crd

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/crd"
	"github.com/bowsprit/bowsprit/test/oracle/fixture"
)

// definitions returns real definitions, which lie outside of the repository, and one of our own. ORACLE_STEP chooses every
// n-th of the large provider's.
func definitions(t testing.TB) map[string]map[string]any {
	out := map[string]map[string]any{}
	add := func(name string, raw []byte) bool {
		raw, err := yaml.YAMLToJSON(raw)
		if err != nil {
			t.Fatal(err)
		}
		var obj map[string]any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &obj); err != nil {
			t.Fatal(err)
		}
		if obj["kind"] == "CustomResourceDefinition" {
			out[name] = obj
		}
		return true
	}
	add("crontab", []byte(cronTab))
	for name, raw := range fixture.Files(t) {
		add(name, raw)
	}
	fixture.Upjet(t, fixture.Setting("ORACLE_STEP", 100), add)
	return out
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

// outcome is what one side makes of a definition.
type pair struct {
	ours, theirs *apiextensionsv1.CustomResourceDefinition
}

// decodeBoth takes a body through both decoders and holds the results, or the errors, to each other.
func decodeBoth(t *testing.T, obj map[string]any) (p pair, ok bool) {
	raw := mustJSON(obj)
	theirs, strict, theirErr := decodeUpstream(raw)
	mine := cloneJSON(obj).(map[string]any)
	unknown, ourErr := crd.Normalize(mine)
	if (theirErr == nil) != (ourErr == nil) || theirErr != nil && ourErr.Error() != theirErr.Error() {
		t.Fatalf("decode: ours %v, upstream %v\n%s", ourErr, theirErr, raw)
	}
	if theirErr != nil {
		return p, false
	}
	want := map[string]int{}
	for _, s := range strict {
		want[s]++
	}
	got := map[string]int{}
	for _, u := range unknown {
		got[fmt.Sprintf("unknown field %q", u)]++
	}
	if len(strict) < 100 && !maps.Equal(got, want) {
		t.Fatalf("unknown fields: ours %v, upstream %v\n%s", got, want, raw)
	}
	// Not of the normal form: upstream validates what the client sent, and an empty list is not always none to it.
	ours, err := crd.Decode(obj)
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	// Compared as the store would hold them, except that what upstream writes as null and reads as nothing may be gone.
	if a, b := string(mustJSON(mine)), string(mustJSON(canonical(theirs))); a != b {
		t.Fatalf("normal form\nours     %s\nupstream %s", a, b)
	}
	crd.SetDefaults(ours)
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(theirs)
	return pair{ours, theirs}, true
}

func canonical(def *apiextensionsv1.CustomResourceDefinition) map[string]any {
	var m map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(mustJSON(def), &m); err != nil {
		panic(err)
	}
	return m
}

// prepare gives a definition the status that a create gives it.
func (p pair) prepare() {
	for _, def := range []*apiextensionsv1.CustomResourceDefinition{p.ours, p.theirs} {
		def.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
		def.Generation = 1
		for _, v := range def.Spec.Versions {
			if v.Storage {
				def.Status.StoredVersions = []string{v.Name}
				break
			}
		}
	}
}

func compare(t *testing.T, v *crd.Validator, p pair, old *pair) {
	t.Helper()
	var was *apiextensionsv1.CustomResourceDefinition
	if old != nil {
		was = old.theirs
	}
	theirs, panicked := validateUpstream(p.theirs, was)
	if panicked != nil {
		return // upstream looks into schemas that are not there; a client gets a 500
	}
	var got map[string]int
	if old == nil {
		got = texts(v.Validate(p.ours))
	} else {
		got = texts(v.ValidateUpdate(p.ours, old.ours))
	}
	d := difference(got, texts(theirs))
	for range 10 {
		if d == "" {
			return
		}
		// Upstream walks maps and stops at the first fault of some kinds: which one is left to chance.
		theirs, _ = validateUpstream(p.theirs, was)
		d = difference(got, texts(theirs))
	}
	t.Fatalf("%s\n%s", d, mustJSON(p.theirs))
}

// TestValidate validates mutations of real definitions without CEL rules, as new ones and as updates of each other.
func TestValidate(t *testing.T) {
	run(t, fixture.Setting("ORACLE_CASES", 6000)/60, &crd.Validator{}, func(m mutator, original map[string]any) func(map[string]any) {
		dropRules(original)
		return m.mutate
	})
}

// TestValidateRules does the same with rules, most of the time changing one.
func TestValidateRules(t *testing.T) {
	run(t, fixture.Setting("ORACLE_CASES", 6000)/600, crd.NewValidator(), func(m mutator, original map[string]any) func(map[string]any) {
		return func(obj map[string]any) {
			if schemas := schemasOf(obj); len(schemas) > 0 && m.IntN(5) > 0 {
				m.rule(schemas[m.IntN(len(schemas))])
			} else {
				m.mutate(obj)
			}
		}
	})
}

// run validates rounds mutations of each definition.
func run(t *testing.T, rounds int, v *crd.Validator, prepare func(m mutator, original map[string]any) (mutate func(map[string]any))) {
	all := definitions(t)
	var made atomic.Int64
	t.Cleanup(func() { t.Logf("%d definitions, %d comparisons", len(all), made.Load()) })
	for i, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mutator{rand.New(rand.NewPCG(uint64(fixture.Setting("ORACLE_SEED", 1)), uint64(i)))}
			mutate := prepare(m, all[name])
			var old *pair
			for range rounds {
				obj := cloneJSON(all[name]).(map[string]any)
				m.shrink(obj, 60)
				for range m.IntN(4) {
					mutate(obj)
				}
				p, ok := decodeBoth(t, obj)
				if !ok {
					continue
				}
				p.prepare()
				compare(t, v, p, nil)
				made.Add(2) // decoded, validated
				if old != nil {
					if m.IntN(2) == 0 {
						old.establish()
					}
					compare(t, v, p, old)
					made.Add(1)
				}
				if old == nil || m.IntN(2) == 0 {
					old = &p
				}
			}
		})
	}
}

func (p pair) establish() {
	for _, def := range []*apiextensionsv1.CustomResourceDefinition{p.ours, p.theirs} {
		def.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	}
}
