package kinds

import (
	"maps"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// defaultNetworkPolicy: a policy without types is one for what comes in, and for what goes out if it has rules for
// that.
func defaultNetworkPolicy(obj catalog.Object) {
	spec := child(obj, "spec")
	if types, _ := spec["policyTypes"].([]any); len(types) > 0 {
		return
	}
	types := []any{"Ingress"}
	if egress, _ := spec["egress"].([]any); len(egress) > 0 {
		types = append(types, "Egress")
	}
	spec["policyTypes"] = types
}

// defaultSubjects gives users and groups of a binding their API group.
func defaultSubjects(obj catalog.Object) {
	for _, s := range catalog.Objects(obj["subjects"]) {
		if k := catalog.Text(s, "kind"); k == "User" || k == "Group" {
			orElse(s, "apiGroup", "rbac.authorization.k8s.io")
		}
	}
}

// defaultNodeStatus: what a node has, it can give.
func defaultNodeStatus(obj catalog.Object) {
	status, _ := obj["status"].(map[string]any)
	if capacity, ok := status["capacity"].(map[string]any); ok && status["allocatable"] == nil {
		status["allocatable"] = maps.Clone(capacity)
	}
}

// nameLimitRange gives one that nobody has named its uid for a name.
func nameLimitRange(obj catalog.Object, _ catalog.Env) {
	meta := child(obj, "metadata")
	if name, _ := meta["name"].(string); name == "" {
		meta["name"] = meta["uid"]
	}
}

// defaultLimitRange completes limits of containers from one another: max, default, defaultRequest, min.
func defaultLimitRange(obj catalog.Object) {
	spec, _ := obj["spec"].(map[string]any)
	for _, item := range catalog.Objects(spec["limits"]) {
		if item["type"] != "Container" {
			continue
		}
		take := func(to, from string) {
			source, _ := item[from].(map[string]any)
			for name, quantity := range source {
				orElse(child(item, to), name, quantity)
			}
		}
		take("default", "max")
		take("defaultRequest", "default")
		take("defaultRequest", "min")
	}
}

// defaultDeviceCounts: whoever asks for an exact count of devices and names none wants one.
func defaultDeviceCounts(spec catalog.Object) {
	devices, _ := spec["devices"].(map[string]any)
	one := func(r catalog.Object) {
		if r["allocationMode"] == "ExactCount" {
			orElse(r, "count", int64(1))
		}
	}
	for _, r := range catalog.Objects(devices["requests"]) {
		if exactly, ok := r["exactly"].(map[string]any); ok {
			one(exactly)
		}
		for _, sub := range catalog.Objects(r["firstAvailable"]) {
			one(sub)
		}
	}
}

func defaultResourceClaim(obj catalog.Object) { defaultDeviceCounts(child(obj, "spec")) }

func defaultResourceClaimTemplate(obj catalog.Object) {
	defaultDeviceCounts(child(child(obj, "spec"), "spec"))
}
