package kinds

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// podGracePeriod is what the client asks for, else what the pod says. A pod that no node runs, or that has run, has
// nothing to end.
func podGracePeriod(obj catalog.Object, asked *int64) int64 {
	switch phase := catalog.Text(obj, "status", "phase"); {
	case catalog.Text(obj, "spec", "nodeName") == "", phase == string(corev1.PodFailed),
		phase == string(corev1.PodSucceeded):
		return 0
	case asked != nil:
		return atLeastOne(*asked)
	}
	spec, _ := obj["spec"].(map[string]any)
	period, _ := spec["terminationGracePeriodSeconds"].(int64)
	return atLeastOne(period)
}

// atLeastOne makes a second of what old objects have instead of one, which is a negative number.
func atLeastOne(period int64) int64 {
	if period < 0 {
		return 1
	}
	return period
}
