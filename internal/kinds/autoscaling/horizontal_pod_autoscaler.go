package autoscaling

import (
	"encoding/json"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// autoscalerKind is the only kind that has two versions with different fields.
func autoscalerKind() rule.Kind {
	k := rule.Of[autoscalingv2.HorizontalPodAutoscaler](rule.Kind{
		Group: autoscalingV2, Kind: "HorizontalPodAutoscaler", Plural: "horizontalpodautoscalers",
		Short: []string{"hpa"}, Categories: rule.CategoryAll,
		Status: true, Generation: true,
		Strategy: &catalog.Strategy{
			Default: defaultAutoscaler, UnconditionalUpdate: true, Cells: rule.Printed(autoscalerCells),
		},
	})
	older := rule.Of[autoscalingv1.HorizontalPodAutoscaler](rule.Kind{
		Status: true, Generation: true,
		Strategy: &catalog.Strategy{
			Default: defaultOlderAutoscaler, UnconditionalUpdate: true, Cells: rule.Printed(olderAutoscalerCells),
		},
	})
	k.Also = []*rule.Version{{Name: "v1", Rank: 15, New: older.New, Strategy: older.Strategy}}
	k.Convert = convertAutoscaler
	return k
}

var autoscalingV2 = rule.Group{Name: "autoscaling", Version: "v2", Priority: 17500, Rank: 30}

// defaultOlderAutoscaler sets the default CPU target of a v1 autoscaler without metrics, also in its annotation.
func defaultOlderAutoscaler(obj object.Object) {
	var metrics []any
	if text := object.String(obj, "metadata", "annotations", metricsAnnotation); text != "" &&
		json.Unmarshal([]byte(text), &metrics) == nil && len(metrics) > 0 {
		return
	}
	rule.SetDefault(object.Child(obj, "spec"), "targetCPUUtilizationPercentage", int64(defaultUtilization))
}

// defaultAutoscaler sets the default metric of a v2 autoscaler, and completes a given behavior.
func defaultAutoscaler(obj object.Object) {
	spec := object.Child(obj, "spec")
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
	up := object.Child(behavior, "scaleUp")
	rule.SetDefault(up, "stabilizationWindowSeconds", int64(0))
	rule.SetDefault(up, "selectPolicy", "Max")
	rule.SetDefault(up, "policies", []any{policy("Pods", 4), policy("Percent", 100)})
	down := object.Child(behavior, "scaleDown")
	rule.SetDefault(down, "selectPolicy", "Max")
	rule.SetDefault(down, "policies", []any{policy("Percent", 100)})
}

// horizontalPodAutoscalerFunctions are the functions that horizontal_pod_autoscaler.txt names.
func horizontalPodAutoscalerFunctions() rule.Functions {
	return rule.Functions{
		"maxReplicas":  maxReplicas,
		"metric":       metric,
		"minReplicas":  minReplicas,
		"metricTarget": func(val *rule.Validation, p rule.Value) { metricTarget(val, p.Object(), p.Path) },
		"scaleTarget":  scaleTarget,
		"zeroReplicas": zeroReplicas,
	}
}
