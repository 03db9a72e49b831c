package core

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// containerStatuses validates the users and devices of containers in a kubelet's report.
func containerStatuses(val *rule.Validation, status object.Object, path *field.Path) {
	spec := object.Map(val.Obj, "spec")
	for _, list := range []string{"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"} {
		for i, s := range rule.Objects(status[list]) {
			containerUser(val, s, object.String(object.Map(spec, "os"), "name"),
				path.Child(list).Index(i).Child("user", "linux"))
		}
	}
	for _, list := range []string{"containerStatuses", "initContainerStatuses"} {
		containers := byName(rule.Objects(spec[strings.TrimSuffix(list, "Statuses")+"s"]))
		claims := map[string]sets.Set[string]{}
		for i, s := range rule.Objects(status[list]) {
			name := object.String(s, "name")
			c := containers[name]
			if claims[name] == nil {
				claims[name] = sets.New(claimNames(object.Map(c, "resources"))...)
			}
			allocated(val, s, c, claims[name], path.Child(list).Index(i).Child("allocatedResourcesStatus"))
		}
	}
	for i, s := range rule.Objects(status["ephemeralContainerStatuses"]) {
		if !rule.IsEmpty(s["allocatedResourcesStatus"]) {
			val.Forbidden(path.Child("ephemeralContainerStatuses").Index(i).Child("allocatedResourcesStatus"),
				"must not be specified in container status")
		}
	}
}

func containerUser(val *rule.Validation, status object.Object, os string, path *field.Path) {
	user := object.Map(status, "user", "linux")
	switch {
	case user == nil:
	case os == "windows":
		val.Forbidden(path, "cannot be set for a windows pod")
	case os == "" || os == "linux":
		id(val, user["uid"], path.Child("uid"))
		id(val, user["gid"], path.Child("gid"))
		groups, _ := user["supplementalGroups"].([]any)
		for i, g := range groups {
			id(val, g, path.Child("supplementalGroups").Index(i))
		}
	}
}

// id validates the number of a user or a group.
func id(val *rule.Validation, v any, path *field.Path) {
	if n, _ := v.(int64); n < 0 || n > math.MaxInt32 {
		val.Invalid(path, n, validation.InclusiveRangeError(0, math.MaxInt32))
	}
}

// allocated validates the device status of a container: each must belong to a claim or resource that the container
// requests. container is nil if the pod has no container of this name.
func allocated(val *rule.Validation, status, container object.Object, claims sets.Set[string], path *field.Path) {
	requests := object.Map(container, "resources", "requests")
	for i, a := range rule.Objects(status["allocatedResourcesStatus"]) {
		name, here := object.String(a, "name"), path.Index(i)
		switch claim := strings.HasPrefix(name, "claim:"); {
		case container == nil:
		case claim && !claims.Has(name):
			val.Invalid(here.Child("name"), name,
				"must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty")
		case !claim && !has(requests, name):
			val.Invalid(here.Child("name"), name, "must match one of the container's resource requests")
		}
		health(val, rule.Objects(a["resources"]), here.Child("resources"))
	}
}

func has(m object.Object, key string) bool {
	_, ok := m[key]
	return ok
}

func claimNames(resources object.Object) []string {
	var out []string
	for _, c := range rule.Objects(resources["claims"]) {
		name := "claim:" + object.String(c, "name")
		if request := object.String(c, "request"); request != "" {
			name += "/" + request
		}
		out = append(out, name)
	}
	return out
}

func health(val *rule.Validation, list []object.Object, path *field.Path) {
	seen := map[string]bool{}
	for i, r := range list {
		at, id := path.Index(i), object.String(r, "resourceID")
		if h := object.String(r, "health"); !slices.Contains([]string{"Healthy", "Unhealthy", "Unknown"}, h) {
			val.Unsupported(at.Child("health"), h, "Healthy", "Unhealthy", "Unknown")
		}
		if message, ok := r["message"].(string); ok && message == "" {
			val.Required(at.Child("message"), "must be non-empty if specified")
		} else if len(message) > corev1.ResourceHealthMessageMaxLength {
			val.Add(field.TooLong(at.Child("message"), message, corev1.ResourceHealthMessageMaxLength))
		}
		if seen[id] {
			val.Duplicate(at.Child("resourceID"), id)
		}
		seen[id] = true
	}
}

// extendedClaim validates the claim for the extended resources of a pod's containers.
func extendedClaim(val *rule.Validation, status object.Object, path *field.Path) {
	if status == nil {
		return
	}
	containers := map[string]object.Object{}
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range rule.Objects(object.Map(val.Obj, "spec")[list]) {
			containers[object.String(c, "name")] = c
		}
	}
	at := path.Child("requestMappings")
	mappings := rule.Objects(status["requestMappings"])
	if len(mappings) == 0 {
		val.Required(at, "at least one request mapping is required")
	}
	seen := map[[3]string]bool{}
	for i, m := range mappings {
		here := at.Index(i)
		key := [3]string{object.String(m, "containerName"), object.String(m, "resourceName"),
			object.String(m, "requestName")}
		if c, ok := containers[key[0]]; !ok {
			val.Invalid(here.Child("containerName"), key[0],
				"must match the name of an entry in spec.initContainers.name or spec.containers.name")
		} else if _, ok := object.Map(c, "resources", "requests")[key[1]]; !ok {
			val.Invalid(here.Child("resourceName"), key[1],
				"must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests")
		}
		val.Invalids(path.Child("requestName"), key[2], validation.IsDNS1123Label(key[2]))
		if seen[key] {
			for n, name := range []string{"containerName", "resourceName", "requestName"} {
				val.Duplicate(here.Child(name), key[n])
			}
		}
		seen[key] = true
	}
	if name := object.String(status, "resourceClaimName"); name == "" {
		val.Required(path.Child("resourceClaimName"), "")
	} else {
		val.Invalids(path.Child("resourceClaimName"), name, validation.IsDNS1123Subdomain(name))
	}
}
