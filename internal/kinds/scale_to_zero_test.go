package kinds

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// TestScaleToZero checks that an autoscaler may have no pods with HPAScaleToZero, which is on from 1.37 on, if it has a
// metric from outside of its pods, in both versions of the kind. An autoscaler that has none already may stay so.
func TestScaleToZero(t *testing.T) {
	t.Parallel()
	const external = `[{type: External, external: {metric: {name: queue}, target: {type: Value, value: "1"}}}]`
	const cpu = `[{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]`
	const least = `spec.minReplicas: Invalid value: 0: must be greater than or equal to 1`
	const outside = `spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to ` +
		`zero replicas`
	// In v1 the metrics other than CPU utilization are in an annotation.
	const older = `[{"type":"External","external":{"metricName":"queue","targetValue":"1"}}]`
	for _, test := range []struct {
		release        string
		given          map[string]bool
		metrics, older string
		was            bool
		want           []string
	}{
		{"1.37", nil, external, older, false, nil},
		{"1.37", nil, cpu, "", false, []string{outside}},
		{"1.37", map[string]bool{"HPAScaleToZero": false}, external, older, false, []string{least}},
		{"1.37", map[string]bool{"HPAScaleToZero": false}, external, older, true, nil},
		{"1.36", nil, external, older, false, []string{least}},
		{"1.36", nil, external, older, true, nil},
		{"1.36", map[string]bool{"HPAScaleToZero": true}, external, older, false, nil},
		{"1.34", nil, cpu, "", false, []string{least, outside}},
	} {
		e, err := ParseEmulation([]string{test.release}, nil)
		if err != nil {
			t.Fatal(err)
		}
		resources := Resources()
		e.DropDisabled(resources, test.given)
		r := resources[slices.IndexFunc(resources,
			func(r *catalog.Resource) bool { return r.Plural == "horizontalpodautoscalers" })]
		const spec = `minReplicas: 0, maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}`
		for version, text := range map[string]string{
			"v2": "{metadata: {name: a, namespace: b}, spec: {" + spec + ", metrics: " + test.metrics + "}}",
			"v1": "{metadata: {name: a, namespace: b, annotations: {autoscaling.alpha.kubernetes.io/metrics: '" +
				test.older + "'}}, spec: {" + spec + "}}",
		} {
			s := r.StrategyFor(r.Version(version))
			raw, err := yaml.YAMLToJSON([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			decoded, err := codec.DecodeJSON(raw)
			if err != nil {
				t.Fatal(err)
			}
			obj := decoded.(object.Object)
			s.Default(obj)
			errs := s.Validate(t.Context(), obj)
			if test.was {
				errs = s.ValidateUpdate(t.Context(), obj, obj, "")
			}
			var got []string
			for _, err := range errs {
				got = append(got, err.Error())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s %s %v, had none %v:\n%q\nwant %q", version, test.release, test.given, test.was, got, test.want)
			}
		}
	}
}
