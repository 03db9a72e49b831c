package disruption

import (
	"math"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestHugeScales has controllers with replicas that overflow 32 bits together. A sum of 32 bits expected one pod.
func TestHugeScales(t *testing.T) {
	t.Parallel()
	expected := total(map[types.UID]int32{"a": math.MaxInt32, "b": math.MaxInt32, "c": 3})
	half := intstr.FromString("50%")
	b := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &half}}
	desired, err := Desired(b, expected)
	if expected != math.MaxInt32 || desired != math.MaxInt32/2+1 || err != nil {
		t.Errorf("%d of %d pods must be healthy: %v", desired, expected, err)
	}
}
