// Package quota counts the objects of a namespace and refuses new ones when a ResourceQuota says that it is full.
//
// Plugin is kube's admission plugin ResourceQuota: last among those that validate a write, it charges a new object to
// every quota of its namespace that counts it, by a compare-and-swap on the quota's status, before the object is
// stored. So two writers cannot take the last place both. Count is what the quota's controller sets status right by,
// after deletions and after writes that were charged and failed.
//
// Counted are objects of every kind ("count/<plural>.<group>", custom kinds included) and what has a name of its own:
// configmaps, persistentvolumeclaims, pods (that have not ended), replicationcontrollers, resourcequotas, secrets,
// services, services.loadbalancers and services.nodeports. Plugin is safe for concurrent use.
package quota

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Usage is how much there is, or is asked for, by the name that quotas have for it.
type Usage map[string]int64

// Counted reports whether quotas count objects of a resource. Events come and go by themselves.
func Counted(r *catalog.Resource) bool {
	return r.Namespaced && !r.Virtual && !(r.Plural == "events" && (r.Group == "" || r.Group == "events.k8s.io"))
}

// plain are the resources of the core group that have a name without "count/".
var plain = map[string]bool{
	"configmaps": true, "persistentvolumeclaims": true, "pods": true, "replicationcontrollers": true,
	"resourcequotas": true, "secrets": true,
	"services": true,
}

// Of returns what one object is counted as.
func Of(r *catalog.Resource, obj map[string]any) Usage {
	u := Usage{"count/" + r.Qualified(): 1}
	if r.Group != "" || !plain[r.Plural] {
		return u
	}
	spec, _ := obj["spec"].(map[string]any)
	switch r.Plural {
	case "pods":
		status, _ := obj["status"].(map[string]any)
		if phase := status["phase"]; phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed) {
			return u
		}
	case "services":
		u[string(
			corev1.ResourceServicesNodePorts)], u[string(corev1.ResourceServicesLoadBalancers)] = servicePorts(spec)
	}
	u[r.Plural] = 1
	return u
}

// servicePorts returns how many node ports and load balancers a service wants. Ports count before they have a number.
func servicePorts(spec map[string]any) (ports, balancers int64) {
	list, _ := spec["ports"].([]any)
	switch spec["type"] {
	case string(corev1.ServiceTypeNodePort):
		return int64(len(list)), 0
	case string(corev1.ServiceTypeLoadBalancer):
		if spec["allocateLoadBalancerNodePorts"] != false {
			return int64(len(list)), 1
		}
		for _, entry := range list {
			port, _ := entry.(map[string]any)
			if n, _ := port["nodePort"].(int64); n != 0 {
				ports++
			}
		}
		return ports, 1
	}
	return 0, 0
}

// Count returns how much a namespace holds of what name stands for. false if nothing of that name is counted here.
func Count(view *watchcache.View, snap *catalog.Snapshot, namespace, name string) (int64, bool) {
	r, each := find(snap, name)
	if r == nil || !Counted(r) {
		return 0, false
	}
	objects := view.Collection(r.Prefix).Snapshot()
	if !each {
		return int64(objects.Count(namespace, "")), true
	}
	var n int64
	objects.Scan(namespace, "", func(e *watchcache.Entry) bool {
		if v, err := codec.DecodeJSON(e.JSON()); err == nil {
			obj, _ := v.(map[string]any)
			n += Of(r, obj)[name]
		}
		return true
	})
	return n, true
}

// find returns the resource that a name counts, and whether its objects must be looked at one by one.
func find(snap *catalog.Snapshot, name string) (r *catalog.Resource, each bool) {
	if resource, ok := strings.CutPrefix(name, "count/"); ok {
		plural, group, _ := strings.Cut(resource, ".")
		return snap.Resource(group, plural), false
	}
	switch name {
	case "pods":
		return snap.Resource("", name), true
	case string(corev1.ResourceServicesNodePorts), string(corev1.ResourceServicesLoadBalancers):
		return snap.Resource("", "services"), true
	}
	if plain[name] {
		return snap.Resource("", name), false
	}
	return nil, false
}
