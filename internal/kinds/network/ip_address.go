package network

import (
	networkingv1 "k8s.io/api/networking/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func ipAddressKind() rule.Kind {
	return rule.Of[networkingv1.IPAddress](rule.Kind{
		Group: networkingV1, Kind: "IPAddress", Plural: "ipaddresses", Short: []string{"ip"}, ClusterScoped: true,
		Also: rule.OnDemand[networkingv1beta1.IPAddress](networkingV1beta1),
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(ipAddressCells), ValidName: rule.NameIsAddress, NameIsPrefix: true,
			UnconditionalUpdate: true,
		},
	})
}

// ipAddressCells has one cell more than Kubernetes has columns, which lack the age.
func ipAddressCells(ip *networkingv1.IPAddress, e catalog.Env) []any {
	parent := rule.None
	if ref := ip.Spec.ParentRef; ref != nil {
		gr := schema.GroupResource{Group: ref.Group, Resource: ref.Resource}
		parent = rule.Lower(gr.String())
		if ref.Namespace != "" {
			parent += "/" + ref.Namespace
		}
		parent += "/" + ref.Name
	}
	return []any{ip.Name, parent, rule.Ago(ip.CreationTimestamp, e)}
}
