package core

import (
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/object"
)

// defaultPod sets the defaults that apply to pods but not to templates: requests from limits, host ports, and a valid
// grace period.
func defaultPod(obj object.Object) {
	spec, _ := obj["spec"].(map[string]any)
	if spec == nil {
		return
	}
	for _, list := range []string{"containers", "initContainers"} {
		for _, c := range object.Objects(spec[list]) {
			requestLimits(c)
			if spec["hostNetwork"] == true {
				publishPorts(c)
			}
		}
	}
	pod.DefaultSpec(spec)
	if seconds, ok := spec["terminationGracePeriodSeconds"].(int64); ok && seconds < 0 {
		spec["terminationGracePeriodSeconds"] = int64(1) // a template keeps its value
	}
	if status := object.Map(obj, "status"); status != nil {
		mirrorPodIP(status)
		pod.RoundStatus(status)
	}
}

// requestLimits sets missing requests of a container to its limits.
func requestLimits(container object.Object) {
	resources, _ := container["resources"].(map[string]any)
	limits, _ := resources["limits"].(map[string]any)
	if len(limits) == 0 {
		return
	}
	requests := object.Child(resources, "requests")
	for name, quantity := range limits {
		if _, ok := requests[name]; !ok {
			requests[name] = quantity
		}
	}
}

// publishPorts sets the host ports of a container to its container ports.
func publishPorts(container object.Object) {
	for _, p := range object.Objects(container["ports"]) {
		if p["hostPort"] == nil && p["containerPort"] != nil && p["containerPort"] != int64(0) {
			p["hostPort"] = p["containerPort"]
		}
	}
}

// mirrorPodIP synchronizes podIP and the first of podIPs: older kubelets write only podIP, which takes precedence.
func mirrorPodIP(status object.Object) {
	ips, _ := status["podIPs"].([]any)
	first := ""
	if len(ips) > 0 {
		entry, _ := ips[0].(map[string]any)
		first = object.String(entry, "ip")
	}
	switch ip := object.String(status, "podIP"); {
	case ip != "" && ip != first:
		status["podIPs"] = []any{map[string]any{"ip": ip}}
	case ip == "" && first != "":
		status["podIP"] = first
	}
}
