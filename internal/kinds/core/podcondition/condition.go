// Package podcondition sets conditions of pods, for those of the server who change a pod's status: the binding and the
// eviction of a pod, and the collector of pods.
package podcondition

import (
	"time"

	"github.com/bowsprit/bowsprit/internal/object"
)

// Set puts a condition among those of a pod. Its time is that of the last change of its status.
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
