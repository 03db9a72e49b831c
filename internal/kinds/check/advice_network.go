package check

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (a *advice) service() {
	spec, path := inner(a.obj, "spec"), field.NewPath("spec")
	kind, clusterIP := text1(spec, "type"), text1(spec, "clusterIP")
	headless := kind == "ClusterIP" && clusterIP == "None"
	externalIPs, balancerIP := texts(spec["externalIPs"]), text1(spec, "loadBalancerIP")
	if _, ok := a.annotations()["service.kubernetes.io/topology-aware-hints"]; ok {
		a.plainly(
			"annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead")
	}
	if clusterIP != "" && clusterIP != "None" {
		for i, ip := range texts(spec["clusterIPs"]) {
			a.ip(path.Child("clusterIPs").Index(i), ip)
		}
	}
	if headless {
		if balancerIP != "" {
			a.plainly("spec.loadBalancerIP is ignored for headless services")
		}
		if len(externalIPs) > 0 {
			a.plainly("spec.externalIPs is ignored for headless services")
		}
		if text1(spec, "sessionAffinity") != "None" {
			a.plainly("spec.SessionAffinity is ignored for headless services")
		}
	}
	for i, ip := range externalIPs {
		a.ip(path.Child("externalIPs").Index(i), ip)
	}
	if len(externalIPs) > 0 && !headless && kind != "ExternalName" {
		a.plainly("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
	}
	if balancerIP != "" {
		a.ip(path.Child("loadBalancerIP"), balancerIP)
	}
	for i, cidr := range texts(spec["loadBalancerSourceRanges"]) {
		a.cidr(path.Child("loadBalancerSourceRanges").Index(i), cidr)
	}
	if kind == "ExternalName" && len(externalIPs) > 0 {
		a.plainly(`spec.externalIPs is ignored when spec.type is "ExternalName"`)
	}
	if kind != "ExternalName" && text1(spec, "externalName") != "" {
		a.plainly(`spec.externalName is ignored when spec.type is not "ExternalName"`)
	}
	if text1(spec, "trafficDistribution") == "PreferClose" {
		a.say(path.Child("trafficDistribution"), `"PreferClose" is deprecated; use "PreferSameZone"`)
	}
}

// endpoints says nothing about what Kubernetes' own controller writes: it puts addresses right itself.
func (a *advice) endpoints() {
	if a.label("endpoints.kubernetes.io/managed-by") == "endpoint-controller" {
		return
	}
	for i, subset := range objects(a.obj["subsets"]) {
		for _, list := range []string{"addresses", "notReadyAddresses"} {
			for k, address := range objects(subset[list]) {
				a.ip(field.NewPath("subsets").Index(i).Child(list).Index(k).Child("ip"), text1(address, "ip"))
			}
		}
	}
}

func (a *advice) endpointSlice() {
	kind := text1(a.obj, "addressType")
	if a.old == nil && kind == "FQDN" {
		// the field is not in a spec; the text is Kubernetes'
		a.say(field.NewPath("spec", "addressType"), "FQDN endpoints are deprecated")
	}
	if kind == "FQDN" {
		return
	}
	switch a.label("endpointslice.kubernetes.io/managed-by") {
	case "endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io":
		return
	}
	for i, endpoint := range objects(a.obj["endpoints"]) {
		for k, address := range texts(endpoint["addresses"]) {
			a.ip(field.NewPath("endpoints").Index(i).Child("addresses").Index(k), address)
		}
	}
}

func (a *advice) ingress() {
	const annotation = "kubernetes.io/ingress.class"
	if _, ok := a.annotations()[annotation]; ok && a.old == nil && inner(a.obj, "spec")["ingressClassName"] == nil {
		a.plainly(fmt.Sprintf("annotation %q is deprecated, please use 'spec.ingressClassName' instead", annotation))
	}
}

func (a *advice) networkPolicy() {
	for _, way := range [][2]string{{"ingress", "from"}, {"egress", "to"}} {
		for i, rule := range objects(inner(a.obj, "spec")[way[0]]) {
			for k, peer := range objects(rule[way[1]]) {
				block := inner(peer, "ipBlock")
				if block == nil {
					continue
				}
				path := field.NewPath("spec", way[0]).Index(i).Child(way[1]).Index(k).Child("ipBlock")
				a.cidr(path.Child("cidr"), text1(block, "cidr"))
				for n, except := range texts(block["except"]) {
					a.cidr(path.Child("except").Index(n), except)
				}
			}
		}
	}
}
