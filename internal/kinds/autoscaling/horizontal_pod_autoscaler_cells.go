package autoscaling

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func autoscalerCells(h *autoscalingv2.HorizontalPodAutoscaler, e catalog.Env) []any {
	least := rule.Unset
	if h.Spec.MinReplicas != nil {
		least = fmt.Sprint(*h.Spec.MinReplicas)
	}
	return []any{
		h.Name, h.Spec.ScaleTargetRef.Kind + "/" + h.Spec.ScaleTargetRef.Name,
		targets(h.Spec.Metrics, h.Status.CurrentMetrics),
		least, int64(h.Spec.MaxReplicas), int64(h.Status.CurrentReplicas), rule.Ago(h.CreationTimestamp, e),
	}
}

func olderAutoscalerCells(h *autoscalingv1.HorizontalPodAutoscaler, e catalog.Env) []any {
	return autoscalerCells(autoscalerV2(h), e)
}

// targets lists the current and target value of each metric: "cpu: 40%/80%".
func targets(specs []autoscalingv2.MetricSpec, current []autoscalingv2.MetricStatus) string {
	if len(specs) == 0 {
		return rule.None
	}
	var list []string
	for i := range specs {
		var now autoscalingv2.MetricStatus
		if i < len(current) {
			now = current[i]
		}
		list = append(list, target(&specs[i], &now))
	}
	return rule.FirstFew(list, 2, ", ")
}

func target(spec *autoscalingv2.MetricSpec, now *autoscalingv2.MetricStatus) string {
	switch {
	case spec.Type == autoscalingv2.ExternalMetricSourceType && spec.External != nil:
		var is *autoscalingv2.MetricValueStatus
		if now.External != nil {
			is = &now.External.Current
		}
		return valueTarget(spec.External.Target, is)
	case spec.Type == autoscalingv2.ObjectMetricSourceType && spec.Object != nil:
		var is *autoscalingv2.MetricValueStatus
		if now.Object != nil {
			is = &now.Object.Current
		}
		return valueTarget(spec.Object.Target, is)
	case spec.Type == autoscalingv2.PodsMetricSourceType && spec.Pods != nil:
		is := "<unknown>"
		if now.Pods != nil {
			is = quantity(now.Pods.Current.AverageValue)
		}
		return is + "/" + quantity(spec.Pods.Target.AverageValue)
	case spec.Type == autoscalingv2.ResourceMetricSourceType && spec.Resource != nil:
		var is *autoscalingv2.MetricValueStatus
		if now.Resource != nil {
			is = &now.Resource.Current
		}
		return string(spec.Resource.Name) + ": " + resourceTarget(spec.Resource.Target, is)
	case spec.Type == autoscalingv2.ContainerResourceMetricSourceType && spec.ContainerResource != nil:
		var is *autoscalingv2.MetricValueStatus
		if now.ContainerResource != nil {
			is = &now.ContainerResource.Current
		}
		return string(spec.ContainerResource.Name) + ": " + resourceTarget(spec.ContainerResource.Target, is)
	}
	return "<unknown type>"
}

func valueTarget(t autoscalingv2.MetricTarget, is *autoscalingv2.MetricValueStatus) string {
	now := "<unknown>"
	if t.AverageValue != nil {
		if is != nil && is.AverageValue != nil {
			now = is.AverageValue.String()
		}
		return now + "/" + t.AverageValue.String() + " (avg)"
	}
	if is != nil {
		now = quantity(is.Value)
	}
	return now + "/" + quantity(t.Value)
}

func resourceTarget(t autoscalingv2.MetricTarget, is *autoscalingv2.MetricValueStatus) string {
	now := "<unknown>"
	if t.AverageValue != nil {
		if is != nil {
			now = quantity(is.AverageValue)
		}
		return now + "/" + t.AverageValue.String()
	}
	if is != nil && is.AverageUtilization != nil {
		now = fmt.Sprintf("%d%%", *is.AverageUtilization)
	}
	shall := "<auto>"
	if t.AverageUtilization != nil {
		shall = fmt.Sprintf("%d%%", *t.AverageUtilization)
	}
	return now + "/" + shall
}

func quantity(q *resource.Quantity) string {
	if q == nil {
		return "<nil>"
	}
	return q.String()
}
