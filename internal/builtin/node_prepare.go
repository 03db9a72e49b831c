package builtin

import "github.com/bowsprit/bowsprit/internal/catalog"

// defaultNode: what a node has, it can give, and its first range of addresses has a field of its own.
func defaultNode(obj catalog.Object) {
	defaultNodeStatus(obj)
	if spec := at(obj, "spec"); spec != nil {
		ranges, _ := spec["podCIDRs"].([]any)
		switch first := text(spec, "podCIDR"); {
		case first != "" && (len(ranges) == 0 || ranges[0] != first):
			spec["podCIDRs"] = []any{first}
		case first == "" && len(ranges) > 0:
			spec["podCIDR"] = ranges[0]
		}
	}
}

// prepareNodeCreate keeps the status, which a kubelet makes its node with, but for the configuration that kubelets no longer read.
func prepareNodeCreate(obj catalog.Object, _ catalog.Env) {
	delete(at(obj, "spec"), "configSource")
	delete(at(obj, "status"), "config")
}

func prepareNodeUpdate(obj, old catalog.Object, subresource string, _ catalog.Env) {
	if subresource != "status" {
		if at(old, "spec")["configSource"] == nil {
			delete(at(obj, "spec"), "configSource")
		}
		keep(obj, old, "status")
		return
	}
	keep(obj, old, "spec")
	if at(old, "status")["config"] == nil {
		delete(child(obj, "status"), "config")
	}
}
