package kinds

import "github.com/bowsprit/bowsprit/internal/api/catalog"

// defaultNode: what a node has, it can give, and its first range of addresses has a field of its own.
func defaultNode(obj catalog.Object) {
	defaultNodeStatus(obj)
	if spec := catalog.At(obj, "spec"); spec != nil {
		ranges, _ := spec["podCIDRs"].([]any)
		switch first := catalog.Text(spec, "podCIDR"); {
		case first != "" && (len(ranges) == 0 || ranges[0] != first):
			spec["podCIDRs"] = []any{first}
		case first == "" && len(ranges) > 0:
			spec["podCIDR"] = ranges[0]
		}
	}
}

// prepareNodeCreate keeps the status, which a kubelet makes its node with, but for the configuration that kubelets no
// longer read.
func prepareNodeCreate(obj catalog.Object, _ catalog.Env) {
	delete(catalog.At(obj, "spec"), "configSource")
	delete(catalog.At(obj, "status"), "config")
}

func prepareNodeUpdate(obj, old catalog.Object, subresource string, _ catalog.Env) {
	if subresource != "status" {
		if catalog.At(old, "spec")["configSource"] == nil {
			delete(catalog.At(obj, "spec"), "configSource")
		}
		keep(obj, old, "status")
		return
	}
	keep(obj, old, "spec")
	if catalog.At(old, "status")["config"] == nil {
		delete(child(obj, "status"), "config")
	}
}
