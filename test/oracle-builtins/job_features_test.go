package oraclebuiltins

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// TestJobFeatures makes changes of jobs that disabled features do not allow, or do not validate, and expects the errors
// of Kubernetes' strategies. It is not parallel, because Kubernetes has one set of gates for all.
func TestJobFeatures(t *testing.T) {
	for _, c := range []struct {
		release string
		off     []string
	}{
		{"1.36", nil},
		{"1.36", []string{"MutablePodResourcesForSuspendedJobs"}},
		{"1.36", []string{"MutableSchedulingDirectivesForSuspendedJobs"}},
		{"1.35", nil},
		{"1.34", []string{"JobManagedBy"}},
	} {
		t.Run(fmt.Sprint(c.release, " without ", c.off), func(t *testing.T) {
			featuregatetesting.SetFeatureGateEmulationVersionDuringTest(t, utilfeature.DefaultFeatureGate,
				version.MustParse(c.release))
			e, err := kinds.ParseEmulation([]string{c.release}, nil)
			if err != nil {
				t.Fatal(err)
			}
			given := map[string]bool{}
			for _, name := range c.off {
				given[name] = false
				featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate,
					featuregate.Feature(name), false)
			}
			resources := kinds.Resources()
			e.DropDisabled(resources, given)
			job := resources[slices.IndexFunc(resources, func(r *catalog.Resource) bool { return r.Kind == "Job" })]
			for _, obj := range validObjects(t) {
				if obj["kind"] == "Job" {
					c := &comparison{t: t, r: job, kind: "Job"}
					c.changeConditions(obj)
					c.changePods(obj)
				}
			}
		})
	}
}

// withStatus returns a stored job with another status and the given conditions.
func (c *comparison) withStatus(job, status map[string]any, conditions ...string) map[string]any {
	out, status := c.stored(runtime.DeepCopyJSON(job)), maps.Clone(status)
	if status == nil {
		status = map[string]any{}
	}
	var all []any
	for _, kind := range conditions {
		all = append(all, map[string]any{"type": kind, "status": "True"})
	}
	status["conditions"], out["status"] = all, status
	return out
}

// changeConditions sets each set of the conditions that end a job after each other.
func (c *comparison) changeConditions(job map[string]any) {
	status, _ := job["status"].(map[string]any)
	with := func(set int) map[string]any {
		var conditions []string
		for i, kind := range []string{"Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"} {
			if set&(1<<i) != 0 {
				conditions = append(conditions, kind)
			}
		}
		return c.withStatus(job, status, conditions...)
	}
	for from := range 16 {
		for to := range 16 {
			c.object = fmt.Sprintf("%v from %04b to %04b", job["metadata"], from, to)
			c.update(with(to), with(from), "status", parts["Job/status"])
		}
	}
}

// changePods changes the pod templates of suspended and other jobs, in each stage of a job.
func (c *comparison) changePods(job map[string]any) {
	const started = "2024-01-01T00:00:00Z"
	for stage, old := range map[string]map[string]any{
		"new":       c.withStatus(job, map[string]any{}),
		"active":    c.withStatus(job, map[string]any{"active": int64(1)}),
		"started":   c.withStatus(job, map[string]any{"startTime": started}),
		"suspended": c.withStatus(job, map[string]any{"startTime": started}, "Suspended"),
		"suspended, with a pod": c.withStatus(job, map[string]any{"startTime": started, "active": int64(1)},
			"Suspended"),
	} {
		for name, change := range map[string]func(template, container map[string]any){
			"node": func(template, _ map[string]any) {
				template["spec"].(map[string]any)["nodeSelector"] = map[string]any{"x": "y"}
			},
			"labels": func(template, _ map[string]any) {
				template["metadata"] = map[string]any{"labels": map[string]any{"x": "y"}}
			},
			"resources": func(_, container map[string]any) {
				container["resources"] = map[string]any{"limits": map[string]any{"cpu": "2"}}
			},
			"image": func(_, container map[string]any) { container["image"] = "other" },
		} {
			changed := runtime.DeepCopyJSON(old)
			template := changed["spec"].(map[string]any)["template"].(map[string]any)
			change(template, template["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any))
			c.object = fmt.Sprintf("%v %s, other %s", job["metadata"], stage, name)
			c.update(changed, old, "", strategies["Job"])
		}
	}
}
