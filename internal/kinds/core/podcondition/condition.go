// Package podcondition sets conditions of pods, for the server's own changes of a pod's status: binding, eviction and
// the pod garbage collector.
package podcondition

import (
	"time"

	"github.com/bowsprit/bowsprit/internal/object"
)

// Set sets a condition of a pod. lastTransitionTime changes only with the condition's status.
func Set(pod, condition object.Object, now time.Time) {
	status := object.Child(pod, "status")
	conditions, _ := status["conditions"].([]any)
	condition["lastProbeTime"], condition["lastTransitionTime"] = nil, now.UTC().Format(time.RFC3339)
	for i := range conditions {
		if was, ok := conditions[i].(object.Object); ok && was["type"] == condition["type"] {
			if was["status"] == condition["status"] {
				condition["lastTransitionTime"] = was["lastTransitionTime"]
			}
			conditions[i] = condition
			return
		}
	}
	status["conditions"] = append(conditions, any(condition))
}
