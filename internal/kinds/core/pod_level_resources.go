package core

import (
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/object"
)

// PodLevelDefaulting is the feature that sets the defaults of pod-level resources when a pod is stored, after the
// admission plugins may have added containers.
const PodLevelDefaulting = "PodLevelResourcesFixDefaulting"

// DefaultPodLevelEarly makes pods set the defaults of pod-level resources when they are decoded, as before
// PodLevelDefaulting.
func DefaultPodLevelEarly(pods *catalog.Strategy) {
	fill, drop := pods.Default, pod.DropGatedAt("spec")
	pods.Default = func(obj object.Object) {
		fill(obj)
		if spec := object.Map(obj, "spec"); len(object.Map(spec, "resources", "limits")) > 0 {
			pod.RequestLevel(spec)
		}
	}
	pods.PrepareCreate = func(obj object.Object, e catalog.Env) {
		drop(obj, nil)
		preparePodCreateEarly(obj, e)
	}
	pods.PrepareUpdate = func(obj, old object.Object, subresource string, e catalog.Env) {
		if subresource != "status" {
			drop(obj, old)
		}
		preparePodUpdateEarly(obj, old, subresource, e)
	}
}
