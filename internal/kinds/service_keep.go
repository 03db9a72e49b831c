package kinds

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/check"
)

// prepareServiceCreate lets a client that knows only one address name it alone.
func prepareServiceCreate(obj catalog.Object, _ catalog.Env) {
	resetStatus[corev1.Service](obj)
	spec := child(obj, "spec")
	if ip := catalog.Text(spec, "clusterIP"); ip != "" && len(items(spec["clusterIPs"])) == 0 {
		spec["clusterIPs"] = []any{ip}
	}
}

// keepGiven puts what was given to a service once, and what a client need not repeat, into its new spec: addresses and
// ports on nodes. Families of addresses follow when the service is given what it lacks.
func keepGiven(spec, was catalog.Object) {
	if catalog.Text(spec, "type") != "ExternalName" && catalog.Text(was, "type") != "ExternalName" {
		keepAddresses(spec, was)
	}
	pairAddresses(spec, was)
	if hasNodePorts(spec) && hasNodePorts(was) {
		keepNodePorts(catalog.Objects(spec["ports"]), catalog.Objects(was["ports"]))
	}
	if check.NeedsHealthPort(spec) && check.NeedsHealthPort(was) && absentOrZero(spec["healthCheckNodePort"]) {
		keep(spec, was, "healthCheckNodePort")
	}
}

func keepAddresses(spec, was catalog.Object) {
	if catalog.Text(spec, "clusterIP") == "" {
		keep(spec, was, "clusterIP")
	}
	if len(items(spec["clusterIPs"])) == 0 {
		keep(spec, was, "clusterIPs")
	}
}

// pairAddresses makes clusterIP and clusterIPs one again if a client has changed only one of them.
func pairAddresses(spec, was catalog.Object) {
	now, old := catalog.Text(spec, "clusterIP"), catalog.Text(was, "clusterIP")
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

// keepNodePorts gives each port the number on nodes that the port of its name had, unless another port has that now.
func keepNodePorts(ports, old []catalog.Object) {
	used, had := map[any]bool{}, map[string]any{}
	for _, p := range old {
		had[catalog.Text(p, "name")] = p["nodePort"]
	}
	for _, p := range ports {
		used[p["nodePort"]] = true
	}
	for _, p := range ports {
		if n := had[catalog.Text(p, "name")]; absentOrZero(p["nodePort"]) && !absentOrZero(n) && !used[n] {
			p["nodePort"] = n
		}
	}
}

// hasNodePorts tells whether a service has ports on nodes by itself.
func hasNodePorts(spec catalog.Object) bool {
	kind := catalog.Text(spec, "type")
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
