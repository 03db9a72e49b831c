package kinds

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/check"
)

// defaultPod fills in what a pod has and a template has not: requests for what is limited, the host's ports, a grace
// period that is one.
func defaultPod(obj catalog.Object) {
	spec, _ := obj["spec"].(map[string]any)
	if spec == nil {
		return
	}
	for _, list := range []string{"containers", "initContainers"} {
		for _, c := range catalog.Objects(spec[list]) {
			requestLimits(c)
			if spec["hostNetwork"] == true {
				publishPorts(c)
			}
		}
	}
	requestPodLimits(spec)
	defaultPodSpec(spec)
	if seconds, ok := spec["terminationGracePeriodSeconds"].(int64); ok && seconds < 0 {
		spec["terminationGracePeriodSeconds"] = int64(1) // a template keeps what it says
	}
	if status := catalog.At(obj, "status"); status != nil {
		mirrorPodIP(status)
	}
}

// requestLimits gives a container the requests that are its limits.
func requestLimits(container catalog.Object) {
	resources, _ := container["resources"].(map[string]any)
	limits, _ := resources["limits"].(map[string]any)
	if len(limits) == 0 {
		return
	}
	requests := child(resources, "requests")
	for name, quantity := range limits {
		if _, ok := requests[name]; !ok {
			requests[name] = quantity
		}
	}
}

// publishPorts makes the ports of a container those of its host.
func publishPorts(container catalog.Object) {
	for _, p := range catalog.Objects(container["ports"]) {
		if p["hostPort"] == nil && p["containerPort"] != nil && p["containerPort"] != int64(0) {
			p["hostPort"] = p["containerPort"]
		}
	}
}

// mirrorServiceAccount makes the field and its older name say the same; the newer one counts.
func mirrorServiceAccount(spec catalog.Object) {
	name := catalog.Text(spec, "serviceAccountName")
	if name == "" {
		name = catalog.Text(spec, "serviceAccount")
	}
	if name != "" {
		spec["serviceAccountName"], spec["serviceAccount"] = name, name
	} else {
		delete(spec, "serviceAccount")
	}
}

// mirrorPodIP makes the first address of a pod the one that has a field of its own, which older kubelets write.
func mirrorPodIP(status catalog.Object) {
	ips, _ := status["podIPs"].([]any)
	first := ""
	if len(ips) > 0 {
		entry, _ := ips[0].(map[string]any)
		first = catalog.Text(entry, "ip")
	}
	switch ip := catalog.Text(status, "podIP"); {
	case ip != "" && ip != first:
		status["podIPs"] = []any{map[string]any{"ip": ip}}
	case ip == "" && first != "":
		status["podIP"] = first
	}
}

// defaultTemplate is for the kinds that have a pod template at spec.template.
func defaultTemplate(obj catalog.Object) {
	spec, _ := obj["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	if podSpec, ok := template["spec"].(map[string]any); ok {
		defaultPodSpec(podSpec)
	}
}

func defaultPodTemplate(obj catalog.Object) {
	template, _ := obj["template"].(map[string]any)
	if podSpec, ok := template["spec"].(map[string]any); ok {
		defaultPodSpec(podSpec)
	}
}

// defaultPodSpec fills in what depends on other fields in every spec of a pod.
func defaultPodSpec(spec catalog.Object) {
	mirrorServiceAccount(spec)
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		for _, c := range catalog.Objects(spec[list]) {
			if catalog.Text(c, "imagePullPolicy") == "" {
				c["imagePullPolicy"] = pullPolicy(catalog.Text(c, "image"))
			}
		}
	}
	for _, v := range catalog.Objects(spec["volumes"]) {
		if len(v) == 1 && v["name"] != nil || len(v) == 0 {
			v["emptyDir"] = map[string]any{}
		}
		if image, ok := v["image"].(map[string]any); ok && catalog.Text(image, "pullPolicy") == "" {
			image["pullPolicy"] = pullPolicy(catalog.Text(image, "reference"))
		}
	}
}

// requestPodLimits gives a pod, which may have resources of its own, the requests that follow from its limits and from
// its containers.
func requestPodLimits(spec catalog.Object) {
	resources, _ := spec["resources"].(map[string]any)
	limits, _ := resources["limits"].(map[string]any)
	if len(limits) == 0 {
		return
	}
	requests, _ := resources["requests"].(map[string]any)
	requests = runtime.DeepCopyJSON(requests)
	if requests == nil {
		requests = map[string]any{}
	}
	for name, quantity := range check.Total(spec, "requests") {
		if _, ok := requests[name]; !ok && (name == "cpu" || name == "memory") {
			requests[name] = quantity.String()
		}
	}
	for name, quantity := range limits {
		if _, ok := requests[name]; !ok &&
			(name == "cpu" || name == "memory" || strings.HasPrefix(name, "hugepages-")) {
			requests[name] = quantity
		}
	}
	if len(requests) > 0 {
		resources["requests"] = requests
	}
}
