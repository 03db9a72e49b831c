package check

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const hugePages = "hugepages-"

// Names of resources: those without a domain are Kubernetes' own.
var (
	// objectCounts are counted in whole numbers.
	objectCounts = []string{"pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
		"persistentvolumeclaims", "services.nodeports", "services.loadbalancers"}
	computed = []string{"cpu", "memory", "ephemeral-storage"}
)

// native tells whether a resource is Kubernetes' own.
func native(name string) bool {
	return !strings.Contains(name, "/") || strings.Contains(name, "kubernetes.io/")
}

// extended tells whether a resource is somebody else's, with a name that can stand in a quota.
func extended(name string) bool {
	return !native(name) && !strings.HasPrefix(name, "requests.") &&
		len(validation.IsQualifiedName("requests."+name)) == 0
}

// counted tells whether a resource comes in whole numbers.
func counted(name string) bool { return slices.Contains(objectCounts, name) || extended(name) }

// overcommits tells whether limits may be above requests.
func overcommits(name string) bool { return native(name) && !strings.HasPrefix(name, hugePages) }

func hugePagesInQuota(name string) bool {
	return strings.HasPrefix(name, hugePages) || strings.HasPrefix(name, "requests."+hugePages)
}

// inQuota tells whether a quota may limit Kubernetes' resource of the name.
func inQuota(name string) bool {
	base := strings.TrimPrefix(strings.TrimPrefix(name, "requests."), "limits.")
	return slices.Contains(objectCounts, name) || slices.Contains(computed, base) || name == "requests.storage" ||
		hugePagesInQuota(name)
}

// resourceName judges the name of any resource and tells whether it is one.
func (j *judgement) resourceName(name string, path *field.Path) bool {
	if wrong := validation.IsQualifiedName(name); len(wrong) > 0 {
		j.invalids(path, name, wrong)
		return false
	}
	if !strings.Contains(name, "/") && !inQuota(name) && name != "storage" {
		j.invalid(path, name, "must be a standard resource type or fully qualified")
		return false
	}
	return true
}

// containerResource judges the name of a resource that a container may ask for.
func (j *judgement) containerResource(name string, path *field.Path) {
	j.resourceName(name, path)
	switch {
	case len(strings.Split(name, "/")) == 1:
		if !slices.Contains(computed, name) && !strings.HasPrefix(name, hugePages) {
			j.invalid(path, name, "must be a standard resource for containers")
		}
	case !native(name) && !extended(name):
		j.invalid(path, name, "doesn't follow extended resource name standard")
	}
}

// podResource judges the name of a resource that a pod as a whole may ask for.
func (j *judgement) podResource(name string, path *field.Path) {
	if j.resourceName(name, path) && name != "cpu" && name != "memory" && !strings.HasPrefix(name, hugePages) {
		j.unsupported(path, name, "cpu", hugePages, "memory")
	}
}

// resources judges what a container asks for.
func resources(j *judgement, p place) { j.requirements(p.object(), p.path, j.containerResource) }

// overhead judges resources as limits.
func overhead(j *judgement, p place) {
	if p.value != nil {
		j.requirements(object{"limits": p.value}, p.path, j.containerResource)
	}
}

// requirements judges limits and requests, whose names named judges.
func (j *judgement) requirements(r object, path *field.Path, named func(string, *field.Path)) {
	limits, requests := inner(r, "limits"), inner(r, "requests")
	limitPath, requestPath := path.Child("limits"), path.Child("requests")
	compute, huge := false, false
	one := func(name string, v any, path *field.Path) {
		named(name, path)
		j.resourceQuantity(name, v, path)
		compute = compute || name == "cpu" || name == "memory"
	}
	pages := func(name string, v any, path *field.Path) {
		if strings.HasPrefix(name, hugePages) {
			huge = true
			if q := quantity(v); !wholePages(name, q) && !j.excused(brokenPages) {
				j.invalid(path, q.String(), fmt.Sprintf("%s is not positive integer multiple of %s", q.String(), name))
			}
		}
	}
	for _, name := range keys(limits) {
		at := limitPath.Key(name)
		one(name, limits[name], at)
		pages(name, limits[name], at)
	}
	for _, name := range keys(requests) {
		at := requestPath.Key(name)
		one(name, requests[name], at)
		j.withinLimit(name, requests[name], limits, limitPath, requestPath)
		pages(name, requests[name], at)
	}
	if huge && !compute {
		j.forbidden(path, "HugePages require cpu or memory")
	}
	j.claimNames(r["claims"], path.Child("claims"))
}

func (j *judgement) withinLimit(name string, request any, limits object, limitPath, requestPath *field.Path) {
	limit, ok := limits[name]
	q, most := quantity(request), quantity(limit)
	switch {
	case !ok && !overcommits(name):
		j.required(limitPath, "Limit must be set for non overcommitable resources")
	case !ok:
	case q.Cmp(most) != 0 && !overcommits(name):
		j.invalid(requestPath, q.String(), fmt.Sprintf("must be equal to %s limit of %s", name, most.String()))
	case q.Cmp(most) > 0:
		j.invalid(requestPath, q.String(),
			fmt.Sprintf("must be less than or equal to %s limit of %s", name, most.String()))
	}
}

// wholePages tells whether an amount is a multiple of the size of pages that the resource is named after.
func wholePages(name string, q resource.Quantity) bool {
	size, err := resource.ParseQuantity(strings.TrimPrefix(name, hugePages))
	if err != nil || size.Sign() <= 0 || size.MilliValue()%1000 != 0 {
		return false
	}
	return q.Value()%size.Value() == 0
}

// claimNames wants each claim of a container to be one of the pod's, named once.
func (j *judgement) claimNames(v any, path *field.Path) {
	seen := map[string]bool{}
	for i, c := range objects(v) {
		at, name, request := path.Index(i), text1(c, "name"), text1(c, "request")
		if name == "" {
			j.required(at, "")
			continue
		}
		if seen[name] {
			j.duplicate(at, name)
		} else {
			j.claimRequest(seen, name, request, at)
		}
		if scopeOf(j) == nil || !slices.Contains(scopeOf(j).claims, name) {
			e := field.NotFound(at, name)
			e.Detail = "must be one of the names in pod.spec.resourceClaims"
			if scopeOf(j) == nil || len(scopeOf(j).claims) == 0 {
				e.Detail += " which is empty"
			} else {
				e.Detail += ": " + strings.Join(scopeOf(j).claims, ", ")
			}
			j.add(e)
		}
	}
}

func (j *judgement) claimRequest(seen map[string]bool, name, request string, path *field.Path) {
	key := name
	if request != "" {
		j.invalids(path.Child("request"), request, validation.IsDNS1123Label(request))
		key += "/" + request
	}
	if seen[key] {
		j.duplicate(path, key)
	} else if request == "" {
		for k := range seen {
			if base, _, ok := strings.Cut(k, "/"); ok && base == name {
				j.duplicate(path, name)
			}
		}
	}
	seen[key] = true
}
