package pod

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// DefaultLevel sets missing pod-level requests and limits from the containers' (k8s.io/kubernetes/pkg/api/pod,
// DefaultPodLevelResources).
func DefaultLevel(spec object.Object) {
	resources := object.Map(spec, "resources")
	if len(object.Map(resources, "requests"))+len(object.Map(resources, "limits")) == 0 {
		return
	}
	for name, q := range Total(spec, "limits") {
		if isHugePages(name) && object.Map(resources, "requests")[name] == nil {
			rule.SetDefault(object.Child(resources, "limits"), name, q.String())
		}
	}
	RequestLevel(spec)
	limitLevel(spec)
}

// RequestLevel sets missing pod-level requests to the requests of the containers, or else to the pod-level limits.
func RequestLevel(spec object.Object) {
	resources := object.Map(spec, "resources")
	requests := runtime.DeepCopyJSON(object.Map(resources, "requests"))
	if requests == nil {
		requests = object.Object{}
	}
	for name, q := range Total(spec, "requests") {
		if name == "cpu" || name == "memory" {
			rule.SetDefault(requests, name, q.String())
		}
	}
	for name, q := range object.Map(resources, "limits") {
		if AtLevel(name) {
			rule.SetDefault(requests, name, q)
		}
	}
	if len(requests) > 0 {
		resources["requests"] = requests
	}
}

// limitLevel sets missing pod-level limits of the resources that every container limits.
func limitLevel(spec object.Object) {
	resources := object.Map(spec, "resources")
	containers := slices.Concat(object.Objects(spec["initContainers"]), object.Objects(spec["containers"]),
		object.Objects(spec["ephemeralContainers"]))
	total := Total(spec, "limits")
	for name, request := range object.Map(resources, "requests") {
		limit, limited := total[name]
		unlimited := slices.ContainsFunc(containers, func(c object.Object) bool {
			return object.Map(c, "resources", "limits")[name] == nil
		})
		if !limited || unlimited || !AtLevel(name) || object.Map(resources, "limits")[name] != nil {
			continue
		}
		if q := rule.Quantity(request); quantity.Cmp(q, limit) > 0 {
			limit = q
		}
		object.Child(resources, "limits")[name] = limit.String()
	}
}

// KeepLevel keeps the pod-level resources of old, for clients that do not know the field.
func KeepLevel(spec, old object.Object) {
	if spec["resources"] == nil && old["resources"] != nil {
		Keep(spec, old, "resources")
	}
}

func isHugePages(name string) bool { return strings.HasPrefix(name, "hugepages-") }

// AtLevel reports whether a pod-level resource may have the name.
func AtLevel(name string) bool { return name == "cpu" || name == "memory" || isHugePages(name) }

// ClassOf returns a pod's class of service: Guaranteed, Burstable or BestEffort. Source: "Pod Quality of Service
// Classes" of Kubernetes' documentation.
func ClassOf(spec object.Object) string {
	resources := object.Map(spec, "resources")
	all := []object.Object{resources}
	set := slices.ContainsFunc(slices.Concat(object.Keys(object.Map(resources, "requests")),
		object.Keys(object.Map(resources, "limits"))), AtLevel)
	if !set { // pod-level resources alone count
		all = nil
		for _, list := range []string{"containers", "initContainers"} {
			for _, c := range rule.Objects(spec[list]) {
				all = append(all, object.Map(c, "resources"))
			}
		}
	}
	guaranteed, any := true, false
	for _, r := range all {
		any = any || computes(r)
		for _, name := range []string{"cpu", "memory"} {
			request, limit := rule.Quantity(object.Map(r, "requests")[name]),
				rule.Quantity(object.Map(r, "limits")[name])
			guaranteed = guaranteed && limit.Sign() > 0 && quantity.Cmp(request, limit) == 0
		}
	}
	switch {
	case !any:
		return "BestEffort"
	case guaranteed:
		return "Guaranteed"
	}
	return "Burstable"
}

// computes reports whether CPU or memory is requested or limited.
func computes(r object.Object) bool {
	for _, list := range []string{"requests", "limits"} {
		for _, name := range []string{"cpu", "memory"} {
			if q := rule.Quantity(object.Map(r, list)[name]); q.Sign() > 0 {
				return true
			}
		}
	}
	return false
}
