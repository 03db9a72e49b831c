package kinds

import (
	"encoding/json"
	"math"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// defaultReplicationController takes selector and labels from the template.
func defaultReplicationController(obj catalog.Object) {
	defaultTemplate(obj)
	spec := child(obj, "spec")
	labels := templateLabels(spec)
	if labels == nil {
		return
	}
	if selector, _ := spec["selector"].(map[string]any); len(selector) == 0 {
		spec["selector"] = runtime.DeepCopyJSON(labels)
	}
	labelLike(obj, labels)
}

// labelLike gives an object without labels those of its template.
func labelLike(obj, labels catalog.Object) {
	meta := child(obj, "metadata")
	if have, _ := meta["labels"].(map[string]any); len(have) == 0 {
		meta["labels"] = runtime.DeepCopyJSON(labels)
	}
}

// templateLabels returns the labels of spec.template, or nil.
func templateLabels(spec catalog.Object) catalog.Object {
	template, _ := spec["template"].(map[string]any)
	meta, _ := template["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	return labels
}

func defaultDeployment(obj catalog.Object) {
	defaultTemplate(obj)
	strategy := child(child(obj, "spec"), "strategy")
	if catalog.Text(strategy, "type") == "RollingUpdate" {
		rolling := child(strategy, "rollingUpdate")
		orElse(rolling, "maxUnavailable", "25%")
		orElse(rolling, "maxSurge", "25%")
	}
}

func defaultDaemonSet(obj catalog.Object) {
	defaultTemplate(obj)
	setTemplateGeneration(obj, templateGenerationOf(obj)) // whoever sends none says 0, and so owns the annotation
	strategy := child(child(obj, "spec"), "updateStrategy")
	if catalog.Text(strategy, "type") == "RollingUpdate" {
		rolling := child(strategy, "rollingUpdate")
		orElse(rolling, "maxUnavailable", int64(1))
		orElse(rolling, "maxSurge", int64(0))
	} else if rolling, ok := strategy["rollingUpdate"].(map[string]any); ok { // means nothing, and is there in full
		orElse(rolling, "maxUnavailable", int64(0))
		orElse(rolling, "maxSurge", int64(0))
	}
}

// defaultStatefulSet differs from the others in that a strategy which says its type and nothing else stays so.
func defaultStatefulSet(obj catalog.Object) {
	defaultTemplate(obj)
	strategy := child(child(obj, "spec"), "updateStrategy")
	if catalog.Text(strategy, "type") == "" {
		strategy["type"] = "RollingUpdate"
		child(strategy, "rollingUpdate")
	}
	if rolling, ok := strategy["rollingUpdate"].(map[string]any); ok && strategy["type"] == "RollingUpdate" {
		orElse(rolling, "partition", int64(0))
	}
	for _, claim := range catalog.Objects(child(obj, "spec")["volumeClaimTemplates"]) {
		claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
	}
}

func defaultJob(obj catalog.Object) {
	defaultTemplate(obj)
	spec := child(obj, "spec")
	if spec["completions"] == nil && spec["parallelism"] == nil {
		spec["completions"] = int64(1)
	}
	orElse(spec, "parallelism", int64(1))
	if spec["backoffLimitPerIndex"] != nil {
		orElse(spec, "backoffLimit", int64(math.MaxInt32))
	}
	orElse(spec, "backoffLimit", int64(6))
	if spec["podFailurePolicy"] != nil {
		orElse(spec, "podReplacementPolicy", "Failed")
	}
	orElse(spec, "podReplacementPolicy", "TerminatingOrFailed")
	labelAsTemplate(obj)
}

// labelAsTemplate gives a job without labels those of its template: one map for both, see prepareJobCreate.
func labelAsTemplate(obj catalog.Object) {
	meta := child(obj, "metadata")
	if have, _ := meta["labels"].(map[string]any); len(have) == 0 {
		if labels := templateLabels(child(obj, "spec")); labels != nil {
			meta["labels"] = labels
		}
	}
}

// separateLabels gives a job that has the labels of its template a map of its own.
func separateLabels(obj catalog.Object) {
	meta := child(obj, "metadata")
	if labels, ok := meta["labels"].(map[string]any); ok {
		meta["labels"] = runtime.DeepCopyJSON(labels)
	}
}

func defaultCronJob(obj catalog.Object) {
	spec, _ := obj["spec"].(map[string]any)
	if template, ok := spec["jobTemplate"].(map[string]any); ok {
		defaultTemplate(template)
	}
}

// defaultOlderAutoscaler gives a v1 autoscaler that has no metrics, in its annotation neither, the use of the
// processor as its aim.
func defaultOlderAutoscaler(obj catalog.Object) {
	var metrics []any
	if text := catalog.Text(obj, "metadata", "annotations", metricsAnnotation); text != "" &&
		json.Unmarshal([]byte(text), &metrics) == nil && len(metrics) > 0 {
		return
	}
	orElse(child(obj, "spec"), "targetCPUUtilizationPercentage", int64(defaultUtilization))
}

// defaultAutoscaler gives a v2 autoscaler its metric, and completes a behavior that says something.
func defaultAutoscaler(obj catalog.Object) {
	spec := child(obj, "spec")
	if metrics, _ := spec["metrics"].([]any); len(metrics) == 0 {
		spec["metrics"] = []any{map[string]any{"type": "Resource", "resource": map[string]any{
			"name": "cpu", "target": map[string]any{"type": "Utilization", "averageUtilization": int64(80)},
		}}}
	}
	behavior, ok := spec["behavior"].(map[string]any)
	if !ok {
		return
	}
	policy := func(kind string, value int64) any {
		return map[string]any{"type": kind, "value": value, "periodSeconds": int64(15)}
	}
	up := child(behavior, "scaleUp")
	orElse(up, "stabilizationWindowSeconds", int64(0))
	orElse(up, "selectPolicy", "Max")
	orElse(up, "policies", []any{policy("Pods", 4), policy("Percent", 100)})
	down := child(behavior, "scaleDown")
	orElse(down, "selectPolicy", "Max")
	orElse(down, "policies", []any{policy("Percent", 100)})
}
