package builtin

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/bowsprit/bowsprit/internal/catalog"
)

// networkKinds are those of networking.k8s.io and discovery.k8s.io.
func networkKinds() []kind {
	return []kind{
		of[networkingv1.Ingress](kind{
			group: networking, kind: "Ingress", plural: "ingresses", short: []string{"ing"}, prefix: "ingress", status: true, generation: true,
			rules: &catalog.Rules{UnconditionalUpdate: true},
		}),
		of[networkingv1.IngressClass](kind{
			group: networking, kind: "IngressClass", plural: "ingressclasses", clusterScoped: true, generation: true,
			rules: &catalog.Rules{UnconditionalUpdate: true},
		}),
		of[networkingv1.NetworkPolicy](kind{
			group: networking, kind: "NetworkPolicy", plural: "networkpolicies", short: []string{"netpol"}, generation: true,
			rules: &catalog.Rules{UnconditionalUpdate: true},
		}),
		of[networkingv1.IPAddress](kind{
			group: networking, kind: "IPAddress", plural: "ipaddresses", short: []string{"ip"}, clusterScoped: true,
			rules: &catalog.Rules{UnconditionalUpdate: true},
		}),
		of[networkingv1.ServiceCIDR](kind{
			group: networking, kind: "ServiceCIDR", plural: "servicecidrs", clusterScoped: true, status: true,
			rules: &catalog.Rules{UnconditionalUpdate: true},
		}),
		of[discoveryv1.EndpointSlice](kind{
			group: discovery, kind: "EndpointSlice", plural: "endpointslices", generation: true,
			rules: &catalog.Rules{UnconditionalUpdate: true},
		}),
	}
}
