package address

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// Install adds to the kind of services the rule for objects read from the store: see completeStored. It is called
// before the kinds are in use.
func Install(kinds []*catalog.Resource, ranges []netip.Prefix) {
	s := New(Config{Ranges: ranges})
	for _, r := range kinds {
		if r.Group == "" && r.Plural == "services" {
			r.Strategy.Read = s.completeStored
		}
	}
}

// completeStored completes a service that was stored before there were lists of addresses and families.
//
// Source: defaultOnRead of pkg/registry/core/service/storage; TestReadMatchesUpstream compares.
func (s *Services) completeStored(obj catalog.Object) {
	raw, _ := obj["spec"].(object.Object)
	if ips, _ := raw["clusterIPs"].([]any); len(ips) > 0 && raw["ipFamilies"] != nil {
		return // nearly all have them
	}
	a := assignment{Services: s, obj: obj}
	var err error
	if a.spec, err = specOf(obj); err != nil {
		return // not a service
	}
	s.completeOld(a.spec)
	a.write()
}

// completeOld adds missing lists to the spec of a stored service.
func (s *Services) completeOld(spec *corev1.ServiceSpec) {
	if len(spec.ClusterIPs) == 0 && spec.ClusterIP != "" {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
	if spec.Type == corev1.ServiceTypeExternalName || len(spec.IPFamilies) > 0 {
		return
	}
	switch {
	case spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0:
		spec.IPFamilies = []corev1.IPFamily{s.first(), other(s.first())}
	case spec.ClusterIP == corev1.ClusterIPNone:
		spec.IPFamilies = []corev1.IPFamily{s.first()}
	default:
		for _, ip := range spec.ClusterIPs {
			spec.IPFamilies = append(spec.IPFamilies, familyOf(ip))
		}
	}
	policies := []corev1.IPFamilyPolicy{corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyRequireDualStack}
	if n := len(spec.IPFamilies); n == 1 || n == 2 {
		spec.IPFamilyPolicy = &policies[n-1]
	}
}
