package core

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// prepareServiceCreate completes the addresses from a client that knows only clusterIP.
func prepareServiceCreate(obj object.Object, _ catalog.Env) {
	rule.ResetStatus[corev1.Service](obj)
	spec := object.Child(obj, "spec")
	if ip := object.String(spec, "clusterIP"); ip != "" && len(items(spec["clusterIPs"])) == 0 {
		spec["clusterIPs"] = []any{ip}
	}
}

// keepGiven copies allocated values that a client need not repeat to the new spec: addresses and node ports. The
// families follow at the allocation.
func keepGiven(spec, was object.Object) {
	if object.String(spec, "type") != "ExternalName" && object.String(was, "type") != "ExternalName" {
		keepAddresses(spec, was)
	}
	pairAddresses(spec, was)
	if hasNodePorts(spec) && hasNodePorts(was) {
		keepNodePorts(object.Objects(spec["ports"]), object.Objects(was["ports"]))
	}
	if NeedsHealthPort(spec) && NeedsHealthPort(was) && absentOrZero(spec["healthCheckNodePort"]) {
		rule.Keep(spec, was, "healthCheckNodePort")
	}
}

func keepAddresses(spec, was object.Object) {
	if object.String(spec, "clusterIP") == "" {
		rule.Keep(spec, was, "clusterIP")
	}
	if len(items(spec["clusterIPs"])) == 0 {
		rule.Keep(spec, was, "clusterIPs")
	}
}

// pairAddresses synchronizes clusterIP and clusterIPs if a client has changed only one of them.
func pairAddresses(spec, was object.Object) {
	now, old := object.String(spec, "clusterIP"), object.String(was, "clusterIP")
	if now == old {
		if len(items(spec["clusterIPs"])) == 0 && len(items(was["clusterIPs"])) > 0 {
			spec["clusterIPs"] = was["clusterIPs"]
		}
		return
	}
	switch {
	case !sameItems(spec["clusterIPs"], was["clusterIPs"]): // left to validation
	case now == "":
		delete(spec, "clusterIPs")
	default:
		spec["clusterIPs"] = []any{now}
	}
}

// keepNodePorts keeps the node port of each port with the same name, unless another port has it now.
func keepNodePorts(ports, old []object.Object) {
	used, had := map[any]bool{}, map[string]any{}
	for _, p := range old {
		had[object.String(p, "name")] = p["nodePort"]
	}
	for _, p := range ports {
		used[p["nodePort"]] = true
	}
	for _, p := range ports {
		if n := had[object.String(p, "name")]; absentOrZero(p["nodePort"]) && !absentOrZero(n) && !used[n] {
			p["nodePort"] = n
		}
	}
}

// hasNodePorts reports whether a service has ports on nodes by itself.
func hasNodePorts(spec object.Object) bool {
	kind := object.String(spec, "type")
	return kind == "NodePort" || kind == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] != false
}

func absentOrZero(v any) bool { return v == nil || v == int64(0) }

func items(list any) []any {
	l, _ := list.([]any)
	return l
}

func sameItems(a, b any) bool {
	x, y := items(a), items(b)
	return len(x) == len(y) && (len(x) == 0 || reflect.DeepEqual(x, y))
}

// prepareServiceUpdate clears fields that the new type of a service does not have, unless the client has changed them
// in the same request: then validation rejects them.
func prepareServiceUpdate(obj, old object.Object, subresource string, _ catalog.Env) {
	if subresource == "status" {
		rule.Keep(obj, old, "spec")
		return
	}
	rule.Keep(obj, old, "status")
	spec, was := object.Child(obj, "spec"), object.Map(old, "spec")
	keepGiven(spec, was)
	kind, oldKind := object.String(spec, "type"), object.String(was, "type")
	drop := func(had, has bool, names ...string) {
		for _, name := range names {
			if had && !has && reflect.DeepEqual(spec[name], was[name]) {
				delete(spec, name)
			}
		}
	}
	if oldKind != "ExternalName" && kind == "ExternalName" {
		if object.String(spec, "clusterIP") == object.String(was, "clusterIP") &&
			sameItems(spec["clusterIPs"], was["clusterIPs"]) {
			delete(spec, "clusterIP")
			delete(spec, "clusterIPs")
		}
		drop(true, false, "ipFamilies", "ipFamilyPolicy")
	}
	if onNodes(oldKind) && !onNodes(kind) && !newNodePorts(spec, was) {
		for _, p := range object.Objects(spec["ports"]) {
			delete(p, "nodePort")
		}
	}
	drop(NeedsHealthPort(was), NeedsHealthPort(spec), "healthCheckNodePort")
	drop(oldKind == "LoadBalancer", kind == "LoadBalancer", "allocateLoadBalancerNodePorts", "loadBalancerClass")
	drop(external(was), external(spec), "externalTrafficPolicy")
	if kind != "LoadBalancer" {
		status := rule.CopyOf(object.Map(obj, "status"))
		status["loadBalancer"] = map[string]any{}
		obj["status"] = status
	}
}

// onNodes reports whether services of a type have ports on nodes.
func onNodes(kind string) bool { return kind == "NodePort" || kind == "LoadBalancer" }

func external(spec object.Object) bool {
	addresses, _ := spec["externalIPs"].([]any)
	return onNodes(object.String(spec, "type")) || object.String(spec, "type") == "ClusterIP" && len(addresses) > 0
}

// newNodePorts reports whether a service requests a node port that it did not have.
func newNodePorts(spec, was object.Object) bool {
	had := map[any]bool{nil: true, int64(0): true}
	for _, p := range object.Objects(was["ports"]) {
		had[p["nodePort"]] = true
	}
	for _, p := range object.Objects(spec["ports"]) {
		if !had[p["nodePort"]] {
			return true
		}
	}
	return false
}
