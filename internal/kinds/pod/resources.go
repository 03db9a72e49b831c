package pod

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

const brokenPages rule.Exception = "huge pages come in whole pages"

const hugePages = "hugepages-"

// objectCounts are counted in whole numbers.
var objectCounts = []string{"pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
	"persistentvolumeclaims", "services.nodeports", "services.loadbalancers"}

var computed = []string{"cpu", "memory", "ephemeral-storage"}

// IsNative reports whether a resource is Kubernetes' own.
func IsNative(name string) bool {
	return !strings.Contains(name, "/") || strings.Contains(name, "kubernetes.io/")
}

// IsExtended reports whether a resource is an extended one, with a name that a quota can use.
func IsExtended(name string) bool {
	return !IsNative(name) && !strings.HasPrefix(name, "requests.") &&
		len(validation.IsQualifiedName("requests."+name)) == 0
}

// counted reports whether a resource has only whole numbers.
func counted(name string) bool { return slices.Contains(objectCounts, name) || IsExtended(name) }

// Overcommits reports whether limits may be above requests.
func Overcommits(name string) bool { return IsNative(name) && !strings.HasPrefix(name, hugePages) }

func hugePagesInQuota(name string) bool {
	return strings.HasPrefix(name, hugePages) || strings.HasPrefix(name, "requests."+hugePages)
}

// InQuota reports whether a quota may limit Kubernetes' resource of the name.
func InQuota(name string) bool {
	base := strings.TrimPrefix(strings.TrimPrefix(name, "requests."), "limits.")
	return slices.Contains(objectCounts, name) || slices.Contains(computed, base) || name == "requests.storage" ||
		hugePagesInQuota(name)
}

// CheckResourceName validates the name of any resource and reports whether it is valid.
func CheckResourceName(val *rule.Validation, name string, path *field.Path) bool {
	if wrong := validation.IsQualifiedName(name); len(wrong) > 0 {
		val.Invalids(path, name, wrong)
		return false
	}
	if !strings.Contains(name, "/") && !InQuota(name) && name != "storage" {
		val.Invalid(path, name, "must be a standard resource type or fully qualified")
		return false
	}
	return true
}

// CheckContainerResource validates the name of a resource of a container.
func CheckContainerResource(val *rule.Validation, name string, path *field.Path) {
	CheckResourceName(val, name, path)
	switch {
	case len(strings.Split(name, "/")) == 1:
		if !slices.Contains(computed, name) && !strings.HasPrefix(name, hugePages) {
			val.Invalid(path, name, "must be a standard resource for containers")
		}
	case !IsNative(name) && !IsExtended(name):
		val.Invalid(path, name, "doesn't follow extended resource name standard")
	}
}

// podResource validates the name of a pod-level resource.
func podResource(val *rule.Validation, name string, path *field.Path) {
	if CheckResourceName(val, name, path) && name != "cpu" && name != "memory" && !strings.HasPrefix(name, hugePages) {
		val.Unsupported(path, name, "cpu", hugePages, "memory")
	}
}

// resources validates the resources of a container.
func resources(val *rule.Validation, p rule.Value) {
	CheckRequirements(val, p.Object(), p.Path,
		func(name string, path *field.Path) { CheckContainerResource(val, name, path) })
}

// overhead validates resources as limits.
func overhead(val *rule.Validation, p rule.Value) {
	if p.New != nil {
		CheckRequirements(val, object.Object{"limits": p.New}, p.Path,
			func(name string, path *field.Path) { CheckContainerResource(val, name, path) })
	}
}

// CheckRequirements validates limits and requests; named validates their names.
func CheckRequirements(val *rule.Validation, r object.Object, path *field.Path, named func(string, *field.Path)) {
	limits, requests := object.Map(r, "limits"), object.Map(r, "requests")
	limitPath, requestPath := path.Child("limits"), path.Child("requests")
	compute, huge := false, false
	one := func(name string, v any, path *field.Path) {
		named(name, path)
		CheckQuantity(val, name, v, path)
		compute = compute || name == "cpu" || name == "memory"
	}
	pages := func(name string, v any, path *field.Path) {
		if strings.HasPrefix(name, hugePages) {
			huge = true
			if q := rule.Quantity(v); !wholePages(name, q) && !val.Excused(brokenPages) {
				val.Invalid(path, q.String(),
					fmt.Sprintf("%s is not positive integer multiple of %s", q.String(), name))
			}
		}
	}
	for _, name := range object.Keys(limits) {
		at := limitPath.Key(name)
		one(name, limits[name], at)
		pages(name, limits[name], at)
	}
	for _, name := range object.Keys(requests) {
		at := requestPath.Key(name)
		one(name, requests[name], at)
		withinLimit(val, name, requests[name], limits, path)
		pages(name, requests[name], at)
	}
	if huge && !compute {
		val.Forbidden(path, "HugePages require cpu or memory")
	}
	claimNames(val, r["claims"], path.Child("claims"))
}

// withinLimit requires a request for a resource to be at most its limit; path is the path of both lists.
func withinLimit(val *rule.Validation, name string, request any, limits object.Object, path *field.Path) {
	limitPath, requestPath := path.Child("limits"), path.Child("requests")
	limit, ok := limits[name]
	q, most := rule.Quantity(request), rule.Quantity(limit)
	switch {
	case !ok && !Overcommits(name):
		val.Required(limitPath, "Limit must be set for non overcommitable resources")
	case !ok:
	case quantity.Cmp(q, most) != 0 && !Overcommits(name):
		val.Invalid(requestPath, q.String(), fmt.Sprintf("must be equal to %s limit of %s", name, most.String()))
	case quantity.Cmp(q, most) > 0:
		val.Invalid(requestPath, q.String(),
			fmt.Sprintf("must be less than or equal to %s limit of %s", name, most.String()))
	}
}

// wholePages reports whether an amount is a multiple of the size of pages that the resource is named after.
func wholePages(name string, q resource.Quantity) bool {
	size, err := quantity.Parse(strings.TrimPrefix(name, hugePages))
	if err != nil || size.Sign() <= 0 || size.MilliValue()%1000 != 0 {
		return false
	}
	return q.Value()%size.Value() == 0
}

// claimNames requires each claim of a container to be a claim of the pod, without duplicates.
func claimNames(val *rule.Validation, v any, path *field.Path) {
	seen := map[string]bool{}
	for i, c := range rule.Objects(v) {
		at, name, request := path.Index(i), object.String(c, "name"), object.String(c, "request")
		if name == "" {
			val.Required(at, "")
			continue
		}
		if seen[name] {
			val.Duplicate(at, name)
		} else {
			claimRequest(val, seen, name, request, at)
		}
		if scopeOf(val) == nil || !scopeOf(val).claims.Has(name) {
			e := field.NotFound(at, name)
			if scopeOf(val) == nil || len(scopeOf(val).claims) == 0 {
				e.Detail = "must be one of the names in pod.spec.resourceClaims which is empty"
			} else {
				e.Detail = scopeOf(val).claimList // shared by all errors
			}
			val.Add(e)
		}
	}
}

func claimRequest(val *rule.Validation, seen map[string]bool, name, request string, path *field.Path) {
	key := name
	if request != "" {
		val.Invalids(path.Child("request"), request, validation.IsDNS1123Label(request))
		key += "/" + request
	}
	if seen[key] {
		val.Duplicate(path, key)
	} else if request == "" {
		for k := range seen {
			if base, _, ok := strings.Cut(k, "/"); ok && base == name {
				val.Duplicate(path, name)
			}
		}
	}
	seen[key] = true
}

// CheckQuantity validates an amount of a resource.
func CheckQuantity(val *rule.Validation, name string, v any, path *field.Path) {
	q := rule.Quantity(v)
	if q.Sign() < 0 {
		val.Invalid(path, q.String(), "must be greater than or equal to 0")
	}
	if counted(name) && q.MilliValue()%1000 != 0 {
		val.Invalid(path, q.String(), "must be an integer")
	}
}
