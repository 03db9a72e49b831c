package address

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	policyPath   = field.NewPath("spec", "ipFamilyPolicy")
	familiesPath = field.NewPath("spec", "ipFamilies")
	addressPath  = field.NewPath("spec", "clusterIPs")
)

// families completes the family policy and the address families of a service, or rejects unavailable ones.
//
// Source: KEP-563, IPv4/IPv6 dual-stack; TestAssignMatchesUpstream compares.
func (a *assignment) families() error {
	spec := a.spec
	if spec.Type == corev1.ServiceTypeExternalName || a.stillPrefersTwo() {
		return nil
	}
	if spec.IPFamilyPolicy == nil {
		policy := a.usualPolicy()
		spec.IPFamilyPolicy = &policy
	}
	if errs := a.wrongAddresses(); len(errs) > 0 {
		return a.invalid(errs...)
	}
	errs := a.giveUpSecond()
	if policyOf(spec) == corev1.IPFamilyPolicySingleStack {
		const want = "must be 'RequireDualStack' or 'PreferDualStack' when multiple %s are specified"
		if len(spec.ClusterIPs) == 2 {
			errs = append(errs, a.wrongPolicy(fmt.Sprintf(want, "cluster IPs")))
		}
		if len(spec.IPFamilies) == 2 {
			errs = append(errs, a.wrongPolicy(fmt.Sprintf(want, "IP families")))
		}
	}
	if errs = append(errs, a.familiesOfAddresses()...); len(errs) > 0 {
		return a.invalid(errs...)
	}
	if spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0 {
		// The families of its endpoints are unknown: it may have families that the cluster has not.
		a.fillFamilies(true)
		return nil
	}
	if policyOf(spec) == corev1.IPFamilyPolicyRequireDualStack && len(a.Ranges) < 2 {
		errs = append(errs, a.wrongPolicy("this cluster is not configured for dual-stack services"))
	}
	for i, family := range spec.IPFamilies {
		if !a.served(family) {
			errs = append(errs, field.Invalid(familiesPath.Index(i), family, "not configured on this cluster"))
		}
	}
	if len(errs) > 0 {
		return a.invalid(errs...)
	}
	a.fillFamilies(len(a.Ranges) == 2)
	return nil
}

// stillPrefersTwo reports whether a service with PreferDualStack keeps its families: they change at the user's request,
// not when the cluster changes.
func (a *assignment) stillPrefersTwo() bool {
	const prefers = corev1.IPFamilyPolicyPreferDualStack
	return a.was != nil && a.was.Type == a.spec.Type &&
		policyOf(a.spec) == prefers && (a.was.IPFamilyPolicy == nil || policyOf(a.was) == prefers) &&
		slices.Equal(a.was.ClusterIPs, a.spec.ClusterIPs) && slices.Equal(a.was.IPFamilies, a.spec.IPFamilies)
}

// usualPolicy is that of a service that names none.
func (a *assignment) usualPolicy() corev1.IPFamilyPolicy {
	switch {
	case a.was != nil && a.was.IPFamilyPolicy != nil:
		return *a.was.IPFamilyPolicy
	case a.spec.ClusterIP == corev1.ClusterIPNone && len(a.spec.Selector) == 0:
		return corev1.IPFamilyPolicyRequireDualStack
	}
	return corev1.IPFamilyPolicySingleStack
}

// giveUpSecond removes the second address and family of a service with a single-stack policy. The policy must be
// explicit if they are missing in the lists.
func (a *assignment) giveUpSecond() (errs field.ErrorList) {
	if a.was == nil {
		return nil
	}
	fewer := func(now, had int) bool { return now > 0 && now < had }
	spec := a.spec
	if policyOf(spec) == corev1.IPFamilyPolicySingleStack {
		if slices.Equal(a.was.ClusterIPs, spec.ClusterIPs) && len(spec.ClusterIPs) > 1 {
			spec.ClusterIPs = spec.ClusterIPs[:1]
		}
		if slices.Equal(a.was.IPFamilies, spec.IPFamilies) && len(spec.IPFamilies) > 1 {
			spec.IPFamilies = spec.IPFamilies[:1]
		}
		return nil
	}
	if fewer(len(spec.ClusterIPs), len(a.was.ClusterIPs)) {
		errs = append(errs, a.wrongPolicy("must be 'SingleStack' to release the secondary cluster IP"))
	}
	if fewer(len(spec.IPFamilies), len(a.was.IPFamilies)) {
		errs = append(errs, a.wrongPolicy("must be 'SingleStack' to release the secondary IP family"))
	}
	return errs
}

// familiesOfAddresses adds the missing families of given addresses.
func (a *assignment) familiesOfAddresses() (errs field.ErrorList) {
	for i, ip := range a.spec.ClusterIPs {
		if ip == corev1.ClusterIPNone {
			break
		}
		if i < len(a.spec.IPFamilies) {
			continue
		}
		family := familyOf(ip)
		if !a.served(family) {
			errs = append(errs,
				field.Invalid(addressPath.Index(i), a.spec.ClusterIPs, string(family)+
					" is not configured on this cluster"))
			continue
		}
		a.spec.IPFamilies = append(a.spec.IPFamilies, family)
	}
	return errs
}

// fillFamilies sets the default family if there is none, and the other one too if the service may have two.
func (a *assignment) fillFamilies(two bool) {
	spec := a.spec
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{a.first()}
	}
	if len(spec.IPFamilies) == 1 && two && policyOf(spec) != corev1.IPFamilyPolicySingleStack {
		spec.IPFamilies = append(spec.IPFamilies, other(spec.IPFamilies[0]))
	}
}

func (a *assignment) wrongPolicy(why string) *field.Error {
	return field.Invalid(policyPath, a.spec.IPFamilyPolicy, why)
}

// first is the cluster's default family.
func (s *Services) first() corev1.IPFamily { return familyOf(s.Ranges[0].Addr().String()) }

func (s *Services) served(family corev1.IPFamily) bool {
	for _, r := range s.Ranges {
		if familyOf(r.Addr().String()) == family {
			return true
		}
	}
	return false
}

func other(family corev1.IPFamily) corev1.IPFamily {
	if family == corev1.IPv4Protocol {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}
