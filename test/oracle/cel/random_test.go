package cel

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/object/schema/cel/rulegen"
	"github.com/bowsprit/bowsprit/test/oracle/fixture"
)

const shards = 8

// TestRandom compares random rules, checked and evaluated on random objects and updates. ORACLE_CASES is the number of
// rules, 800 by default; ORACLE_SEED starts another series.
func TestRandom(t *testing.T) {
	cases, seed := fixture.Setting("ORACLE_CASES", 800), fixture.Setting("ORACLE_SEED", 1)
	objects := load[[]map[string]any](t, shared+"objects.yaml")
	base := load[*apiextensionsv1.JSONSchemaProps](t, shared+"schema.yaml")
	var made atomic.Int64
	t.Cleanup(func() { t.Logf("%d evaluations", made.Load()) })
	for shard := range shards {
		t.Run(strconv.Itoa(shard), func(t *testing.T) {
			t.Parallel()
			var accepted, failures, evaluations int
			for i := range cases / shards {
				g := rulegen.New(uint64(seed)<<8|uint64(shard), uint64(i))
				rules := apiextensionsv1.ValidationRules{{Rule: g.Rule()}}
				if g.IntN(3) == 0 {
					rules[0].MessageExpression = g.Text(1)
				}
				if g.IntN(4) == 0 {
					optional := g.IntN(2) == 0
					rules[0].OptionalOldSelf = &optional
				}
				if g.IntN(4) == 0 {
					rules = append(rules, apiextensionsv1.ValidationRule{Rule: g.Rule()})
				}
				props := base.DeepCopy()
				at(props, "spec", func(p *apiextensionsv1.JSONSchemaProps) { p.XValidations = rules })
				name := fmt.Sprintf("seed %d,%d: %+v", uint64(seed)<<8|uint64(shard), i, rules)
				errs := compareCheck(t, name, props)
				if len(errs) == 0 || !strings.Contains(strings.Join(errs, ""), "compilation failed") {
					accepted++
					s := newSubject(t, name, props)
					// A loop over a map is in no order upstream.
					s.costs = !strings.Contains(name, "objs") && !strings.Contains(name, "labels")
					for range 4 {
						obj, old := g.Object(objects), g.Object(objects)
						failures += s.compare(t, obj, nil) + s.compare(t, obj, old)
						evaluations += 2
					}
				}
				if t.Failed() {
					return
				}
			}
			made.Add(int64(evaluations))
			t.Logf("%d of %d rules accepted, %d evaluations, %d failures", accepted, cases/shards, evaluations,
				failures)
		})
	}
}
