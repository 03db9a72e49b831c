package kinds

import (
	"reflect"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/check"
)

// prepareServiceUpdate takes from a service what its new type does not have, if the client has not changed it at the
// same time: then it is told that it may not be there.
func prepareServiceUpdate(obj, old catalog.Object, subresource string, _ catalog.Env) {
	if subresource == "status" {
		keep(obj, old, "spec")
		return
	}
	keep(obj, old, "status")
	spec, was := child(obj, "spec"), catalog.At(old, "spec")
	keepGiven(spec, was)
	kind, oldKind := catalog.Text(spec, "type"), catalog.Text(was, "type")
	drop := func(had, has bool, names ...string) {
		for _, name := range names {
			if had && !has && reflect.DeepEqual(spec[name], was[name]) {
				delete(spec, name)
			}
		}
	}
	if oldKind != "ExternalName" && kind == "ExternalName" {
		if catalog.Text(spec, "clusterIP") == catalog.Text(was, "clusterIP") &&
			sameItems(spec["clusterIPs"], was["clusterIPs"]) {
			delete(spec, "clusterIP")
			delete(spec, "clusterIPs")
		}
		drop(true, false, "ipFamilies", "ipFamilyPolicy")
	}
	if onNodes(oldKind) && !onNodes(kind) && !newNodePorts(spec, was) {
		for _, p := range catalog.Objects(spec["ports"]) {
			delete(p, "nodePort")
		}
	}
	drop(check.NeedsHealthPort(was), check.NeedsHealthPort(spec), "healthCheckNodePort")
	drop(oldKind == "LoadBalancer", kind == "LoadBalancer", "allocateLoadBalancerNodePorts", "loadBalancerClass")
	drop(external(was), external(spec), "externalTrafficPolicy")
	if kind != "LoadBalancer" {
		status := copyOf(catalog.At(obj, "status"))
		status["loadBalancer"] = map[string]any{}
		obj["status"] = status
	}
}

// onNodes tells whether services of a type have ports on nodes.
func onNodes(kind string) bool { return kind == "NodePort" || kind == "LoadBalancer" }

func external(spec catalog.Object) bool {
	addresses, _ := spec["externalIPs"].([]any)
	return onNodes(catalog.Text(spec, "type")) || catalog.Text(spec, "type") == "ClusterIP" && len(addresses) > 0
}

// newNodePorts tells whether a service asks for a port on nodes that it did not have.
func newNodePorts(spec, was catalog.Object) bool {
	had := map[any]bool{nil: true, int64(0): true}
	for _, p := range catalog.Objects(was["ports"]) {
		had[p["nodePort"]] = true
	}
	for _, p := range catalog.Objects(spec["ports"]) {
		if !had[p["nodePort"]] {
			return true
		}
	}
	return false
}
