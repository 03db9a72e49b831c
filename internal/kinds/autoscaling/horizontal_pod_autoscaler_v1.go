package autoscaling

import (
	"encoding/json"
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// These annotations hold the fields that autoscaling/v1 lacks, so that a conversion loses nothing.
const (
	metricsAnnotation    = "autoscaling.alpha.kubernetes.io/metrics"
	currentAnnotation    = "autoscaling.alpha.kubernetes.io/current-metrics"
	conditionsAnnotation = "autoscaling.alpha.kubernetes.io/conditions"
	behaviorAnnotation   = "autoscaling.alpha.kubernetes.io/behavior"
)

// defaultUtilization is the average use of the processor, in percent, that an autoscaler without metrics aims at.
const defaultUtilization = 80

// convertAutoscaler converts a HorizontalPodAutoscaler between the versions.
func convertAutoscaler(from, _ *catalog.Version, obj object.Object) error {
	var out any
	if from.Name == "v1" {
		in := &autoscalingv1.HorizontalPodAutoscaler{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, in); err != nil {
			return err
		}
		out = autoscalerV2(in)
	} else {
		in := &autoscalingv2.HorizontalPodAutoscaler{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, in); err != nil {
			return err
		}
		v1, err := autoscalerV1(in)
		if err != nil {
			return err
		}
		out = v1
	}
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(out)
	if err != nil {
		return err
	}
	kind := obj["kind"]
	clear(obj)
	maps.Copy(obj, converted)
	obj["kind"] = kind
	return nil
}

// autoscalerV1 stores fields that v1 lacks in annotations: metrics other than CPU usage, the current metrics,
// conditions and behavior.
func autoscalerV1(in *autoscalingv2.HorizontalPodAutoscaler) (*autoscalingv1.HorizontalPodAutoscaler, error) {
	out := &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: in.ObjectMeta}
	out.Annotations = withoutAutoscaler(in.Annotations)
	out.Spec = autoscalingv1.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
		MinReplicas:    in.Spec.MinReplicas, MaxReplicas: in.Spec.MaxReplicas,
	}
	out.Status = autoscalingv1.HorizontalPodAutoscalerStatus{
		ObservedGeneration: in.Status.ObservedGeneration, LastScaleTime: in.Status.LastScaleTime,
		CurrentReplicas: in.Status.CurrentReplicas, DesiredReplicas: in.Status.DesiredReplicas,
	}
	var metrics []autoscalingv1.MetricSpec
	for _, m := range in.Spec.Metrics {
		if r := m.Resource; m.Type == autoscalingv2.ResourceMetricSourceType && r != nil &&
			r.Name == corev1.ResourceCPU && r.Target.AverageUtilization != nil {
			if out.Spec.TargetCPUUtilizationPercentage == nil {
				out.Spec.TargetCPUUtilizationPercentage = r.Target.AverageUtilization
			}
			continue
		}
		metrics = append(metrics, metricV1(m))
	}
	var current []autoscalingv1.MetricStatus
	for _, m := range in.Status.CurrentMetrics {
		if r := m.Resource; m.Type == autoscalingv2.ResourceMetricSourceType && r != nil &&
			r.Name == corev1.ResourceCPU && r.Current.AverageUtilization != nil {
			out.Status.CurrentCPUUtilizationPercentage = r.Current.AverageUtilization
		}
		current = append(current, currentV1(m))
	}
	var err error
	annotate := func(key string, v any, set bool) {
		if !set || err != nil {
			return
		}
		var data []byte
		if data, err = json.Marshal(v); err != nil {
			return
		}
		if out.Annotations == nil {
			out.Annotations = map[string]string{}
		}
		out.Annotations[key] = string(data)
	}
	annotate(metricsAnnotation, metrics, len(metrics) > 0)
	annotate(currentAnnotation, current, len(current) > 0)
	annotate(behaviorAnnotation, behaviorText(in.Spec.Behavior), in.Spec.Behavior != nil)
	annotate(conditionsAnnotation, in.Status.Conditions, len(in.Status.Conditions) > 0)
	return out, err
}

// autoscalerV2 reads the annotations of autoscalerV1. As in Kubernetes it drops unreadable ones.
func autoscalerV2(in *autoscalingv1.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscaler {
	out := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: in.ObjectMeta}
	out.Annotations = withoutAutoscaler(in.Annotations)
	out.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
		MinReplicas:    in.Spec.MinReplicas, MaxReplicas: in.Spec.MaxReplicas,
	}
	out.Status = autoscalingv2.HorizontalPodAutoscalerStatus{
		ObservedGeneration: in.Status.ObservedGeneration, LastScaleTime: in.Status.LastScaleTime,
		CurrentReplicas: in.Status.CurrentReplicas, DesiredReplicas: in.Status.DesiredReplicas,
	}
	read := func(key string, v any) bool {
		text, ok := in.Annotations[key]
		return ok && json.Unmarshal([]byte(text), v) == nil
	}
	var metrics []autoscalingv1.MetricSpec
	if read(metricsAnnotation, &metrics) {
		for _, m := range metrics {
			out.Spec.Metrics = append(out.Spec.Metrics, metricV2(m))
		}
	}
	percent := in.Spec.TargetCPUUtilizationPercentage
	if percent == nil && len(out.Spec.Metrics) == 0 {
		percent = new(int32)
		*percent = defaultUtilization
	}
	if percent != nil {
		out.Spec.Metrics = append(out.Spec.Metrics,
			autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{
					Name: corev1.ResourceCPU,
					Target: autoscalingv2.MetricTarget{
						Type: autoscalingv2.UtilizationMetricType, AverageUtilization: percent,
					},
				}})
	}
	if text, ok := in.Annotations[behaviorAnnotation]; ok {
		out.Spec.Behavior = behaviorOf(text)
	}
	var current []autoscalingv1.MetricStatus
	switch {
	case read(currentAnnotation, &current):
		for _, m := range current {
			out.Status.CurrentMetrics = append(out.Status.CurrentMetrics, currentV2(m))
		}
	case in.Status.CurrentCPUUtilizationPercentage != nil:
		out.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricStatus{
				Name:    corev1.ResourceCPU,
				Current: autoscalingv2.MetricValueStatus{AverageUtilization: in.Status.CurrentCPUUtilizationPercentage},
			}}}
	}
	read(conditionsAnnotation, &out.Status.Conditions)
	return out
}

func withoutAutoscaler(annotations map[string]string) map[string]string {
	if annotations == nil {
		return nil
	}
	out := maps.Clone(annotations)
	for _, key := range []string{metricsAnnotation, currentAnnotation, conditionsAnnotation, behaviorAnnotation} {
		delete(out, key)
	}
	return out
}

// behaviorInternal is how kube writes a behavior into the annotation: with the names of its internal Go type.
type behaviorInternal struct {
	ScaleUp, ScaleDown *rulesInternal
}

type rulesInternal struct {
	StabilizationWindowSeconds *int32
	SelectPolicy               *autoscalingv2.ScalingPolicySelect
	Policies                   []policyInternal
	Tolerance                  *resource.Quantity
}

type policyInternal struct {
	Type                 autoscalingv2.HPAScalingPolicyType
	Value, PeriodSeconds int32
}

func behaviorText(b *autoscalingv2.HorizontalPodAutoscalerBehavior) *behaviorInternal {
	if b == nil {
		return nil
	}
	rules := func(r *autoscalingv2.HPAScalingRules) *rulesInternal {
		if r == nil {
			return nil
		}
		out := &rulesInternal{
			StabilizationWindowSeconds: r.StabilizationWindowSeconds, SelectPolicy: r.SelectPolicy,
			Tolerance: r.Tolerance,
		}
		for _, p := range r.Policies {
			out.Policies = append(out.Policies, policyInternal(p))
		}
		return out
	}
	return &behaviorInternal{rules(b.ScaleUp), rules(b.ScaleDown)}
}

// behaviorOf decodes the output of behaviorText; nil if it is invalid.
func behaviorOf(text string) *autoscalingv2.HorizontalPodAutoscalerBehavior {
	var b behaviorInternal
	if json.Unmarshal([]byte(text), &b) != nil || b == (behaviorInternal{}) {
		return nil
	}
	rules := func(r *rulesInternal) *autoscalingv2.HPAScalingRules {
		if r == nil {
			return nil
		}
		out := &autoscalingv2.HPAScalingRules{
			StabilizationWindowSeconds: r.StabilizationWindowSeconds, SelectPolicy: r.SelectPolicy,
			Tolerance: r.Tolerance,
		}
		for _, p := range r.Policies {
			out.Policies = append(out.Policies, autoscalingv2.HPAScalingPolicy(p))
		}
		return out
	}
	return &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules(b.ScaleUp), ScaleDown: rules(b.ScaleDown)}
}
