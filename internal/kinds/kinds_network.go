package kinds

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// networkKinds are those of networking.k8s.io and discovery.k8s.io.
func networkKinds() []kind {
	return []kind{
		ingressKind(),
		ingressClassKind(),
		networkPolicyKind(),
		ipAddressKind(),
		serviceCIDRKind(),
		endpointSliceKind(),
	}
}

func ingressKind() kind {
	return of[networkingv1.Ingress](kind{
		group: networkingV1, kind: "Ingress", plural: "ingresses", short: []string{"ing"}, prefix: "ingress",
		status: true, generation: true,
		rules: &catalog.Strategy{Cells: printed(ingressCells), UnconditionalUpdate: true},
	})
}

func ingressClassKind() kind {
	return of[networkingv1.IngressClass](kind{
		group: networkingV1, kind: "IngressClass", plural: "ingressclasses", clusterScoped: true, generation: true,
		rules: &catalog.Strategy{Cells: printed(ingressClassCells), VisibleOnReturn: true, UnconditionalUpdate: true},
	})
}

func networkPolicyKind() kind {
	return of[networkingv1.NetworkPolicy](kind{
		group: networkingV1, kind: "NetworkPolicy", plural: "networkpolicies", short: []string{"netpol"},
		generation: true,
		rules: &catalog.Strategy{
			Cells: printed(networkPolicyCells), Default: defaultNetworkPolicy, UnconditionalUpdate: true,
		},
	})
}

func ipAddressKind() kind {
	return of[networkingv1.IPAddress](kind{
		group: networkingV1, kind: "IPAddress", plural: "ipaddresses", short: []string{"ip"}, clusterScoped: true,
		also:  onDemand[networkingv1beta1.IPAddress](networkingV1beta1),
		rules: &catalog.Strategy{Cells: printed(ipAddressCells), ValidName: nameIsAddress, UnconditionalUpdate: true},
	})
}

func serviceCIDRKind() kind {
	return of[networkingv1.ServiceCIDR](kind{
		group: networkingV1, kind: "ServiceCIDR", plural: "servicecidrs", clusterScoped: true, status: true,
		statusOnly: true,
		also:       onDemand[networkingv1beta1.ServiceCIDR](networkingV1beta1),
		rules:      &catalog.Strategy{Cells: printed(serviceCIDRCells), UnconditionalUpdate: true},
	})
}

func endpointSliceKind() kind {
	return of[discoveryv1.EndpointSlice](kind{
		group: discoveryV1, kind: "EndpointSlice", plural: "endpointslices", generation: true,
		rules: &catalog.Strategy{
			Cells: printed(endpointSliceCells), PrepareCreate: prepareSliceCreate, PrepareUpdate: prepareSliceUpdate,
			UnconditionalUpdate: true,
		},
	})
}
