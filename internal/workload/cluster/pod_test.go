package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestTolerates checks that tolerations match taints by key, effect and value, and by a number with Gt and Lt.
func TestTolerates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		toleration corev1.Toleration
		value      string
		want       bool
	}{
		{corev1.Toleration{Key: "k", Value: "5"}, "5", true},
		{corev1.Toleration{Key: "k", Value: "5"}, "6", false},
		{corev1.Toleration{Operator: corev1.TolerationOpExists}, "6", true},
		{corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, "6", false},
		{corev1.Toleration{Key: "k", Operator: corev1.TolerationOpGt, Value: "5"}, "6", true},
		{corev1.Toleration{Key: "k", Operator: corev1.TolerationOpGt, Value: "5"}, "5", false},
		{corev1.Toleration{Key: "k", Operator: corev1.TolerationOpLt, Value: "5"}, "-7", true},
		{corev1.Toleration{Key: "k", Operator: corev1.TolerationOpLt, Value: "5"}, "5", false},
		{corev1.Toleration{Key: "k", Operator: corev1.TolerationOpLt, Value: "5"}, "few", false},
		{corev1.Toleration{Key: "other", Operator: corev1.TolerationOpLt, Value: "5"}, "1", false},
	} {
		taint := &corev1.Taint{Key: "k", Value: c.value, Effect: corev1.TaintEffectNoSchedule}
		if got := Tolerates(&c.toleration, taint); got != c.want {
			t.Errorf("%+v of %q: %v", c.toleration, c.value, got)
		}
	}
}
