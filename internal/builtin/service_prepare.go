package builtin

import (
	"reflect"

	"github.com/bowsprit/bowsprit/internal/builtin/check"
	"github.com/bowsprit/bowsprit/internal/catalog"
)

// prepareServiceUpdate takes from a service what its new type does not have, if the client has not changed it at the same time: then
// it is told that it may not be there.
func prepareServiceUpdate(obj, old catalog.Object, subresource string, _ catalog.Env) {
	if subresource == "status" {
		keep(obj, old, "spec")
		return
	}
	keep(obj, old, "status")
	spec, was := child(obj, "spec"), at(old, "spec")
	keepGiven(spec, was)
	kind, oldKind := text(spec, "type"), text(was, "type")
	drop := func(had, has bool, names ...string) {
		for _, name := range names {
			if had && !has && reflect.DeepEqual(spec[name], was[name]) {
				delete(spec, name)
			}
		}
	}
	if oldKind != "ExternalName" && kind == "ExternalName" {
		if text(spec, "clusterIP") == text(was, "clusterIP") && sameItems(spec["clusterIPs"], was["clusterIPs"]) {
			delete(spec, "clusterIP")
			delete(spec, "clusterIPs")
		}
		drop(true, false, "ipFamilies", "ipFamilyPolicy")
	}
	if onNodes(oldKind) && !onNodes(kind) && !newNodePorts(spec, was) {
		for _, p := range objects(spec["ports"]) {
			delete(p, "nodePort")
		}
	}
	drop(check.NeedsHealthPort(was), check.NeedsHealthPort(spec), "healthCheckNodePort")
	drop(oldKind == "LoadBalancer", kind == "LoadBalancer", "allocateLoadBalancerNodePorts", "loadBalancerClass")
	drop(external(was), external(spec), "externalTrafficPolicy")
	if kind != "LoadBalancer" {
		status := copyOf(at(obj, "status"))
		status["loadBalancer"] = map[string]any{}
		obj["status"] = status
	}
}

// onNodes tells whether services of a type have ports on nodes.
func onNodes(kind string) bool { return kind == "NodePort" || kind == "LoadBalancer" }

func external(spec catalog.Object) bool {
	addresses, _ := spec["externalIPs"].([]any)
	return onNodes(text(spec, "type")) || text(spec, "type") == "ClusterIP" && len(addresses) > 0
}

// newNodePorts tells whether a service asks for a port on nodes that it did not have.
func newNodePorts(spec, was catalog.Object) bool {
	had := map[any]bool{nil: true, int64(0): true}
	for _, p := range objects(was["ports"]) {
		had[p["nodePort"]] = true
	}
	for _, p := range objects(spec["ports"]) {
		if !had[p["nodePort"]] {
			return true
		}
	}
	return false
}
