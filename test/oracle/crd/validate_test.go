package crd

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/test/oracle/fixture"
)

// pair is a definition as decoded by each side.
type pair struct {
	ours, theirs *apiextensionsv1.CustomResourceDefinition
}

// decodeBoth decodes a body with both decoders and compares the results or the errors.
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
	// Decode obj and not its normal form: upstream validates the client's definition, and treats some empty lists as
	// set.
	ours, err := crd.Decode(obj)
	if err != nil {
		ours, err = crd.Decode(mine) // bytes may come as a list of numbers, which the normal form has as text
	}
	if err != nil {
		t.Fatalf("decode: %v\n%s", err, raw)
	}
	// Compare the stored forms. Values that upstream writes as null and reads as absent may be missing.
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

// compare validates a definition on both sides, as an update of old unless that is nil, and returns the number of
// errors.
func compare(t *testing.T, v *crd.Validator, p pair, old *pair) int {
	t.Helper()
	var was *apiextensionsv1.CustomResourceDefinition
	if old != nil {
		was = old.theirs
	}
	theirs, panicked := validateUpstream(p.theirs, was)
	if panicked != nil {
		return 0 // upstream dereferences missing schemas; a client gets a 500
	}
	var got map[string]int
	if old == nil {
		got = texts(v.Validate(p.ours))
	} else {
		got = texts(v.ValidateUpdate(p.ours, old.ours))
	}
	// Upstream walks maps and stops at the first fault of some kinds: which one is left to chance.
	d := difference(got, texts(theirs))
	for n := 0; d != "" && n < 100; n++ {
		theirs, _ = validateUpstream(p.theirs, was)
		d = difference(got, texts(theirs))
	}
	if d != "" {
		t.Fatalf("%s\n%s", d, mustJSON(p.theirs))
	}
	return len(theirs)
}

// TestValidate validates mutations of real definitions without CEL rules, as new ones and as updates of each other.
// ORACLE_MUTANTS is the number of mutants of each definition, ORACLE_SEED another series.
func TestValidate(t *testing.T) {
	run(t, fixture.Setting("ORACLE_MUTANTS", 100), &crd.Validator{},
		func(m mutator, original map[string]any) func(map[string]any) {
			dropRules(original)
			return m.mutate
		})
}

// TestValidateRules does the same with rules, most of the time changing one.
func TestValidateRules(t *testing.T) {
	run(t, fixture.Setting("ORACLE_MUTANTS", 100)/10, crd.NewValidator(),
		func(m mutator, original map[string]any) func(map[string]any) {
			return func(obj map[string]any) {
				if schemas := schemasOf(obj); len(schemas) > 0 && m.IntN(5) > 0 {
					m.rule(schemas[m.IntN(len(schemas))])
				} else {
					m.mutate(obj)
				}
			}
		})
}

// run compares count mutants of each definition. Most are mutants of a cut; half are mutants of the mutant before,
// which then is the stored definition, with its faults; one in a thousand is a mutant of the whole definition.
func run(
	t *testing.T, count int, v *crd.Validator,
	prepare func(m mutator, original map[string]any) (mutate func(map[string]any)),
) {
	var definitions, mutations, created, updated, invalid atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d definitions, %d mutations, %d definitions compared as new ones (%d invalid), %d as updates",
			definitions.Load(), mutations.Load(), created.Load(), invalid.Load(), updated.Load())
	})
	each(t, func(t *testing.T, name string, original map[string]any) {
		definitions.Add(1)
		seed := fnv.New64()
		seed.Write([]byte(name))
		m := mutator{rand.New(rand.NewPCG(uint64(fixture.Setting("ORACLE_SEED", 1)), seed.Sum64()))}
		mutate := prepare(m, original)
		var old *pair
		var stored map[string]any
		for round := range count {
			var obj map[string]any
			switch {
			case round%1000 == 0:
				obj = cloneJSON(original).(map[string]any)
			case stored != nil && m.IntN(2) == 0:
				obj = cloneJSON(stored).(map[string]any)
			default:
				obj = m.cut(original, 10)
			}
			for range 1 + m.IntN(5) {
				mutate(obj)
				mutations.Add(1)
			}
			p, ok := decodeBoth(t, obj)
			if !ok {
				continue
			}
			p.prepare()
			if compare(t, v, p, nil) > 0 {
				invalid.Add(1)
			}
			created.Add(1)
			if old != nil {
				if m.IntN(2) == 0 {
					old.establish()
				}
				compare(t, v, p, old)
				updated.Add(1)
			}
			if old == nil || m.IntN(2) == 0 {
				old, stored = &p, obj
				if round%1000 == 0 {
					stored = nil // too large to go on with
				}
			}
		}
	})
}

func (p pair) establish() {
	for _, def := range []*apiextensionsv1.CustomResourceDefinition{p.ours, p.theirs} {
		def.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
		}
	}
}
