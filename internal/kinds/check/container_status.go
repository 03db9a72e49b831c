package check

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// containerStatuses judges what a kubelet reports of the users and the devices of containers.
func (j *judgement) containerStatuses(status object, path *field.Path) {
	spec := inner(j.obj, "spec")
	for _, list := range []string{"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"} {
		for i, s := range objects(status[list]) {
			j.containerUser(s, text1(inner(spec, "os"), "name"), path.Child(list).Index(i).Child("user", "linux"))
		}
	}
	for _, list := range []string{"containerStatuses", "initContainerStatuses"} {
		for i, s := range objects(status[list]) {
			j.allocated(s, objects(spec[strings.TrimSuffix(list, "Statuses")+"s"]),
				path.Child(list).Index(i).Child("allocatedResourcesStatus"))
		}
	}
	for i, s := range objects(status["ephemeralContainerStatuses"]) {
		if !empty(s["allocatedResourcesStatus"]) {
			j.forbidden(path.Child("ephemeralContainerStatuses").Index(i).Child("allocatedResourcesStatus"),
				"must not be specified in container status")
		}
	}
}

func (j *judgement) containerUser(status object, os string, path *field.Path) {
	user := inner(status, "user", "linux")
	switch {
	case user == nil:
	case os == "windows":
		j.forbidden(path, "cannot be set for a windows pod")
	case os == "" || os == "linux":
		j.id(user["uid"], path.Child("uid"))
		j.id(user["gid"], path.Child("gid"))
		groups, _ := user["supplementalGroups"].([]any)
		for i, g := range groups {
			j.id(g, path.Child("supplementalGroups").Index(i))
		}
	}
}

// id judges the number of a user or a group.
func (j *judgement) id(v any, path *field.Path) {
	if n, _ := v.(int64); n < 0 || n > math.MaxInt32 {
		j.invalid(path, n, validation.InclusiveRangeError(0, math.MaxInt32))
	}
}

// allocated judges how the devices of a container are: each is of a claim or a resource that the container asks for.
func (j *judgement) allocated(status object, containers []object, path *field.Path) {
	at := slices.IndexFunc(containers, func(c object) bool { return text1(c, "name") == text1(status, "name") })
	for i, a := range objects(status["allocatedResourcesStatus"]) {
		name, here := text1(a, "name"), path.Index(i)
		if at >= 0 {
			resources := inner(containers[at], "resources")
			if strings.HasPrefix(name, "claim:") {
				if !slices.Contains(claimNames(resources), name) {
					j.invalid(here.Child("name"), name,
						"must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty")
				}
			} else if _, ok := inner(resources, "requests")[name]; !ok {
				j.invalid(here.Child("name"), name, "must match one of the container's resource requests")
			}
		}
		j.health(objects(a["resources"]), here.Child("resources"))
	}
}

func claimNames(resources object) []string {
	var out []string
	for _, c := range objects(resources["claims"]) {
		name := "claim:" + text1(c, "name")
		if request := text1(c, "request"); request != "" {
			name += "/" + request
		}
		out = append(out, name)
	}
	return out
}

func (j *judgement) health(list []object, path *field.Path) {
	seen := map[string]bool{}
	for i, r := range list {
		at, id := path.Index(i), text1(r, "resourceID")
		if h := text1(r, "health"); !slices.Contains([]string{"Healthy", "Unhealthy", "Unknown"}, h) {
			j.unsupported(at.Child("health"), h, "Healthy", "Unhealthy", "Unknown")
		}
		if message, ok := r["message"].(string); ok && message == "" {
			j.required(at.Child("message"), "must be non-empty if specified")
		} else if len(message) > corev1.ResourceHealthMessageMaxLength {
			j.add(field.TooLong(at.Child("message"), message, corev1.ResourceHealthMessageMaxLength))
		}
		if seen[id] {
			j.duplicate(at.Child("resourceID"), id)
		}
		seen[id] = true
	}
}

// extendedClaim judges which claim gives a pod the extended resources that its containers ask for.
func (j *judgement) extendedClaim(status object, path *field.Path) {
	if status == nil {
		return
	}
	containers := map[string]object{}
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range objects(inner(j.obj, "spec")[list]) {
			containers[text1(c, "name")] = c
		}
	}
	at := path.Child("requestMappings")
	mappings := objects(status["requestMappings"])
	if len(mappings) == 0 {
		j.required(at, "at least one request mapping is required")
	}
	seen := map[[3]string]bool{}
	for i, m := range mappings {
		here := at.Index(i)
		key := [3]string{text1(m, "containerName"), text1(m, "resourceName"), text1(m, "requestName")}
		if c, ok := containers[key[0]]; !ok {
			j.invalid(here.Child("containerName"), key[0],
				"must match the name of an entry in spec.initContainers.name or spec.containers.name")
		} else if _, ok := inner(c, "resources", "requests")[key[1]]; !ok {
			j.invalid(here.Child("resourceName"), key[1],
				"must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests")
		}
		j.invalids(path.Child("requestName"), key[2], validation.IsDNS1123Label(key[2]))
		if seen[key] {
			for n, name := range []string{"containerName", "resourceName", "requestName"} {
				j.duplicate(here.Child(name), key[n])
			}
		}
		seen[key] = true
	}
	if name := text1(status, "resourceClaimName"); name == "" {
		j.required(path.Child("resourceClaimName"), "")
	} else {
		j.invalids(path.Child("resourceClaimName"), name, validation.IsDNS1123Subdomain(name))
	}
}
