package core

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// PodLevelDefaulting is the feature that sets the defaults of pod-level resources when a pod is stored, after the
// admission plugins may have added containers.
const PodLevelDefaulting = "PodLevelResourcesFixDefaulting"

// DefaultPodLevelEarly makes pods set the defaults of pod-level resources when they are decoded, as before
// PodLevelDefaulting.
func DefaultPodLevelEarly(pods *catalog.Strategy) {
	pods.Default = func(obj object.Object) {
		defaultPod(obj)
		if spec := object.Map(obj, "spec"); len(object.Map(spec, "resources", "limits")) > 0 {
			requestPodLevel(spec)
		}
	}
	pods.PrepareCreate = preparePodCreateEarly
	pods.PrepareUpdate = preparePodUpdateEarly
}

// defaultPodLevel sets missing pod-level requests and limits from the containers' (k8s.io/kubernetes/pkg/api/pod,
// DefaultPodLevelResources).
func defaultPodLevel(spec object.Object) {
	resources := object.Map(spec, "resources")
	if len(object.Map(resources, "requests"))+len(object.Map(resources, "limits")) == 0 {
		return
	}
	for name, q := range pod.Total(spec, "limits") {
		if isHugePages(name) && object.Map(resources, "requests")[name] == nil {
			rule.SetDefault(object.Child(resources, "limits"), name, q.String())
		}
	}
	requestPodLevel(spec)
	limitPodLevel(spec)
}

// requestPodLevel sets missing pod-level requests to the requests of the containers, or else to the pod-level limits.
func requestPodLevel(spec object.Object) {
	resources := object.Map(spec, "resources")
	requests := runtime.DeepCopyJSON(object.Map(resources, "requests"))
	if requests == nil {
		requests = object.Object{}
	}
	for name, q := range pod.Total(spec, "requests") {
		if name == "cpu" || name == "memory" {
			rule.SetDefault(requests, name, q.String())
		}
	}
	for name, q := range object.Map(resources, "limits") {
		if atPodLevel(name) {
			rule.SetDefault(requests, name, q)
		}
	}
	if len(requests) > 0 {
		resources["requests"] = requests
	}
}

// limitPodLevel sets missing pod-level limits of the resources that every container limits.
func limitPodLevel(spec object.Object) {
	resources := object.Map(spec, "resources")
	containers := slices.Concat(object.Objects(spec["initContainers"]), object.Objects(spec["containers"]),
		object.Objects(spec["ephemeralContainers"]))
	total := pod.Total(spec, "limits")
	for name, request := range object.Map(resources, "requests") {
		limit, limited := total[name]
		unlimited := slices.ContainsFunc(containers, func(c object.Object) bool {
			return object.Map(c, "resources", "limits")[name] == nil
		})
		if !limited || unlimited || !atPodLevel(name) || object.Map(resources, "limits")[name] != nil {
			continue
		}
		if q := rule.Quantity(request); quantity.Cmp(q, limit) > 0 {
			limit = q
		}
		object.Child(resources, "limits")[name] = limit.String()
	}
}

// keepPodLevel keeps the pod-level resources of old, for clients that do not know the field.
func keepPodLevel(spec, old object.Object) {
	if spec["resources"] == nil && old["resources"] != nil {
		pod.Keep(spec, old, "resources")
	}
}

func isHugePages(name string) bool { return strings.HasPrefix(name, "hugepages-") }

// atPodLevel reports whether a pod-level resource may have the name.
func atPodLevel(name string) bool { return name == "cpu" || name == "memory" || isHugePages(name) }
