package network

import (
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation"
	netutils "k8s.io/utils/net"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func serviceCIDRKind() rule.Kind {
	return rule.Of[networkingv1.ServiceCIDR](rule.Kind{
		Group: networkingV1, Kind: "ServiceCIDR", Plural: "servicecidrs", ClusterScoped: true, Status: true,
		StatusOnly: true,
		Also:       rule.OnDemand[networkingv1beta1.ServiceCIDR](networkingV1beta1),
		Strategy:   &catalog.Strategy{Cells: rule.Printed(serviceCIDRCells), UnconditionalUpdate: true},
	})
}

func serviceCIDRCells(c *networkingv1.ServiceCIDR, e catalog.Env) []any {
	return []any{c.Name, strings.Join(c.Spec.CIDRs, ","), rule.Ago(c.CreationTimestamp, e)}
}

func serviceCIDRs(val *rule.Validation, p rule.Value) {
	list := rule.Strings(p.New)
	if len(list) == 0 {
		val.Required(p.Path, "at least one CIDR required")
		return
	}
	if len(list) > 2 {
		val.Invalid(p.Path, object.Object{"CIDRs": p.New}, "may only hold up to 2 values")
		return
	}
	for i, s := range list {
		val.Errs = append(val.Errs, validation.IsValidCIDR(p.Path.Index(i), s)...)
	}
	if len(list) == 2 {
		if a := netutils.IPFamilyOfCIDRString(list[0]); a == netutils.IPFamilyOfCIDRString(list[1]) &&
			a != netutils.IPFamilyUnknown {
			val.Invalid(p.Path, list,
				"may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64")
		}
	}
}

// serviceCIDRChange allows adding a second range.
func serviceCIDRChange(val *rule.Validation, p rule.Value) {
	now, was := rule.Strings(p.New), rule.Strings(p.Old)
	switch {
	case len(now) == len(was):
		for i := range was {
			if now[i] != was[i] {
				val.Invalid(p.Path.Index(i), now[i], "field is immutable")
			}
		}
	case len(was) == 1 && len(now) == 2:
		if now[0] != was[0] {
			val.Invalid(p.Path.Index(0), now[0], "field is immutable")
		}
		serviceCIDRs(val, p)
	default:
		val.Invalid(p.Path, now, "field is immutable")
	}
}

// serviceCIDRFunctions are the functions that service_cidr.txt names.
func serviceCIDRFunctions() rule.Functions {
	return rule.Functions{
		"serviceCIDRChange": serviceCIDRChange,
		"serviceCIDRs":      serviceCIDRs,
	}
}
