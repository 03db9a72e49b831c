package builtin

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	netutils "k8s.io/utils/net"

	"github.com/bowsprit/bowsprit/internal/builtin/check"
	"github.com/bowsprit/bowsprit/internal/catalog"
)

// prepareServiceCreate lets a client that knows only one address name it alone.
func prepareServiceCreate(obj catalog.Object, _ catalog.Env) {
	resetStatus[corev1.Service](obj)
	spec := child(obj, "spec")
	if ip := text(spec, "clusterIP"); ip != "" && len(items(spec["clusterIPs"])) == 0 {
		spec["clusterIPs"] = []any{ip}
	}
}

// keepGiven puts what was given to a service once, and what a client need not repeat, into its new spec: addresses, their families,
// and ports on nodes.
func keepGiven(spec, was catalog.Object) {
	if text(spec, "type") != "ExternalName" && text(was, "type") != "ExternalName" {
		keepAddresses(spec, was)
	}
	pairAddresses(spec, was)
	keepFamilies(spec, was)
	if hasNodePorts(spec) && hasNodePorts(was) {
		keepNodePorts(objects(spec["ports"]), objects(was["ports"]))
	}
	if check.NeedsHealthPort(spec) && check.NeedsHealthPort(was) && absentOrZero(spec["healthCheckNodePort"]) {
		keep(spec, was, "healthCheckNodePort")
	}
}

func keepAddresses(spec, was catalog.Object) {
	if text(spec, "clusterIP") == "" {
		keep(spec, was, "clusterIP")
	}
	if len(items(spec["clusterIPs"])) == 0 {
		keep(spec, was, "clusterIPs")
	}
}

// pairAddresses makes clusterIP and clusterIPs one again if a client has changed only one of them.
func pairAddresses(spec, was catalog.Object) {
	now, old := text(spec, "clusterIP"), text(was, "clusterIP")
	if now == old {
		if len(items(spec["clusterIPs"])) == 0 && len(items(was["clusterIPs"])) > 0 {
			spec["clusterIPs"] = was["clusterIPs"]
		}
		return
	}
	switch {
	case !sameItems(spec["clusterIPs"], was["clusterIPs"]): // judged by the checks
	case now == "":
		delete(spec, "clusterIPs")
	default:
		spec["clusterIPs"] = []any{now}
	}
}

// keepFamilies completes the families of addresses. Families of a service that has no address yet are left out.
func keepFamilies(spec, was catalog.Object) {
	if text(spec, "type") == "ExternalName" {
		return
	}
	if spec["ipFamilyPolicy"] == nil {
		keep(spec, was, "ipFamilyPolicy")
	}
	families := items(spec["ipFamilies"])
	if text(spec, "ipFamilyPolicy") == "SingleStack" {
		spec["clusterIPs"] = first(spec["clusterIPs"], was["clusterIPs"])
		families, _ = first(spec["ipFamilies"], was["ipFamilies"]).([]any)
	}
	addresses := items(spec["clusterIPs"])
	if len(addresses) == 0 || addresses[0] == "None" {
		if len(families) == 0 {
			families = items(was["ipFamilies"])
		}
	} else if len(families) < len(addresses) {
		for _, ip := range addresses[len(families):] {
			families = append(families[:len(families):len(families)], familyOf(ip))
		}
	}
	if len(families) > 0 {
		spec["ipFamilies"] = families
	}
	if len(addresses) == 0 {
		delete(spec, "clusterIPs")
	}
}

// first returns the first item alone if the list has not changed: that is how a client gives up the second address.
func first(now, old any) any {
	if list := items(now); len(list) > 1 && sameItems(now, old) {
		return list[:1:1]
	}
	return now
}

func familyOf(ip any) string {
	if s, _ := ip.(string); netutils.IsIPv6String(s) {
		return "IPv6"
	}
	return "IPv4"
}

// keepNodePorts gives each port the number on nodes that the port of its name had, unless another port has that now.
func keepNodePorts(ports, old []catalog.Object) {
	used, had := map[any]bool{}, map[string]any{}
	for _, p := range old {
		had[text(p, "name")] = p["nodePort"]
	}
	for _, p := range ports {
		used[p["nodePort"]] = true
	}
	for _, p := range ports {
		if n := had[text(p, "name")]; absentOrZero(p["nodePort"]) && !absentOrZero(n) && !used[n] {
			p["nodePort"] = n
		}
	}
}

// hasNodePorts tells whether a service has ports on nodes by itself.
func hasNodePorts(spec catalog.Object) bool {
	kind := text(spec, "type")
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
