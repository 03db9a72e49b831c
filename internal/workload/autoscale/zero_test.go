package autoscale

import (
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// TestZero scales targets, and checks the condition ScaledToZero and whether the autoscaler then scales up from zero.
func TestZero(t *testing.T) {
	t.Parallel()
	resource := autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType}
	external := autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType}
	for name, c := range map[string]struct {
		metric                  autoscalingv2.MetricSpec
		least, current, desired int32
		reason                  string
		wakes, wakesToLeast     bool
	}{
		"to zero":                   {external, 0, 2, 0, "ScaledToZero", true, true},
		"to one":                    {external, 0, 2, 1, "NotScaledToZero", false, false},
		"from zero":                 {external, 0, 0, 1, "NotScaledToZero", false, false},
		"to zero by a pod's metric": {resource, 0, 2, 0, "NotScaledToZero", false, false},
	} {
		l := &look{autoscalers: &autoscalers{toZero: true}, hpa: &autoscalingv2.HorizontalPodAutoscaler{
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				MinReplicas: &c.least, Metrics: []autoscalingv2.MetricSpec{c.metric},
			},
		}}
		if l.wakes(0) || l.wakes(1) {
			t.Errorf("%s: the autoscaler scales up a target that a user has scaled to zero", name)
		}
		l.zero(c.current, c.desired)
		if got := l.hpa.Status.Conditions[0].Reason; got != c.reason {
			t.Errorf("%s: reason %s, want %s", name, got, c.reason)
		}
		if got := l.wakes(0); got != c.wakes {
			t.Errorf("%s: scales up from zero: %t", name, got)
		}
		l.hpa.Spec.Metrics[0] = resource
		if l.wakes(0) {
			t.Errorf("%s: scales up by a metric that needs pods", name)
		}
		if got := l.wakes(1); got != c.wakesToLeast {
			t.Errorf("%s: scales up to a least number: %t", name, got)
		}
	}
}

// TestZeroWithoutGate checks that without the feature gate the condition ScaledToZero goes, and that no target scales
// up from zero.
func TestZeroWithoutGate(t *testing.T) {
	t.Parallel()
	least := int32(0)
	l := &look{autoscalers: &autoscalers{}, hpa: &autoscalingv2.HorizontalPodAutoscaler{
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MinReplicas: &least,
			Metrics:     []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType}},
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{
				{Type: autoscalingv2.AbleToScale, Status: "True"}, {Type: autoscalingv2.ScaledToZero, Status: "True"},
			},
		},
	}}
	if l.wakes(0) || l.wakes(1) {
		t.Error("the autoscaler scales up from zero")
	}
	l.zero(2, 0)
	if got := l.hpa.Status.Conditions; len(got) != 1 || got[0].Type != autoscalingv2.AbleToScale {
		t.Errorf("conditions: %v", got)
	}
}
