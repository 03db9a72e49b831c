package pod

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// RoundUp rounds quantities up to thousandths, as Kubernetes' defaulting does. The fields are the names of lists in
// obj, each a map of quantities.
func RoundUp(obj object.Object, fields ...string) {
	for _, name := range fields {
		list, _ := obj[name].(map[string]any)
		for key, v := range list {
			// Without one of these it is no finer than thousandths, which is nearly always.
			text, ok := v.(string)
			if !ok || !strings.ContainsAny(text, ".nueE") {
				continue
			}
			if q, err := quantity.Parse(text); err == nil && !q.RoundUp(resource.Milli) {
				list[key] = q.String()
			}
		}
	}
}

// roundResources is RoundUp for the resources of a container, a pod or a claim at obj.resources.
func roundResources(obj object.Object) {
	if resources, ok := obj["resources"].(map[string]any); ok {
		RoundUp(resources, "limits", "requests")
	}
}

// RoundClaim is RoundUp for a PersistentVolumeClaim, or a template of one.
func RoundClaim(claim object.Object) {
	if spec, ok := claim["spec"].(map[string]any); ok {
		roundResources(spec)
	}
	if status, ok := claim["status"].(map[string]any); ok {
		RoundUp(status, "capacity", "allocatedResources")
	}
}

// RoundStatus is RoundUp for the status of a pod.
func RoundStatus(status object.Object) {
	RoundUp(status, "allocatedResources")
	roundResources(status)
	for _, list := range []string{"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"} {
		for _, c := range object.Objects(status[list]) {
			RoundUp(c, "allocatedResources")
			roundResources(c)
		}
	}
}
