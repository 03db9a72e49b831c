package address

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/bowsprit/bowsprit/internal/kinds/ref"
)

// The errors for an address or port that is not available, with Kubernetes' texts.
var (
	errFull        = errors.New("range is full")
	errAddressUsed = errors.New("provided IP is already allocated")
	errNoRange     = errors.New("the provided network does not match the current range")
)

// addresses assigns the missing addresses of a service, and removes addresses that a change gives up.
func (a *assignment) addresses() error {
	spec, was := a.spec, a.was
	switch {
	case was == nil, was.Type == corev1.ServiceTypeExternalName, hasAddresses(was) && len(was.ClusterIPs) == 0:
		// the last from a server that gave none
		return a.allAddresses()
	case a.stillPrefersTwo(), !hasAddresses(was), spec.Type == corev1.ServiceTypeExternalName:
		return nil
	case len(was.IPFamilies) == 1 && len(spec.IPFamilies) == 2:
		if len(spec.ClusterIPs) < 2 {
			spec.ClusterIPs = append(spec.ClusterIPs, "")
		}
		return a.address(1)
	}
	return nil
}

func (a *assignment) allAddresses() error {
	spec := a.spec
	if !hasAddresses(spec) {
		return nil
	}
	for i := range spec.IPFamilies {
		if i == len(spec.ClusterIPs) {
			spec.ClusterIPs = append(spec.ClusterIPs, "")
		}
	}
	for i := range spec.IPFamilies {
		if err := a.address(i); err != nil {
			return err
		}
	}
	if len(spec.ClusterIPs) > 0 {
		spec.ClusterIP = spec.ClusterIPs[0]
	}
	return nil
}

// address assigns the address with index i: the requested one, if there is one.
func (a *assignment) address(i int) error {
	list := a.spec.ClusterIPs
	family, text := a.spec.IPFamilies[i], list[i]
	if text == "" {
		ip, err := a.anyAddress(family)
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("failed to allocate a serviceIP for Service %q: %w", a.name,
				err))
		}
		list[i] = ip.String()
		return nil
	}
	parsed := netutils.ParseIPSloppy(text)
	if parsed == nil {
		return apierrors.NewInternalError(fmt.Errorf("failed to parse service IP %q", text))
	}
	ip, _ := netip.ParseAddr(parsed.String())
	if err := a.reserveAddress(family, ip); err != nil {
		return a.invalid(field.Invalid(addressPath, slices.Clone(list),
			fmt.Sprintf("failed to allocate IP %v: %v", text, err)))
	}
	return nil
}

func (a *assignment) anyAddress(family corev1.IPFamily) (netip.Addr, error) {
	ranges := a.ranges(family)
	if a.dryRun && len(ranges) > 0 {
		return ranges[0].prefix.Addr(), nil // Kubernetes' message; no service can have it
	}
	for _, r := range ranges {
		if ip, ok := r.free(a.Random, a.used); ok {
			return ip, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("%w: create a ServiceCIDR with more addresses, or start a new cluster with a larger "+
		"--service-cluster-ip-range", errFull)
}

func (a *assignment) reserveAddress(family corev1.IPFamily, ip netip.Addr) error {
	ranges := a.ranges(family)
	if a.dryRun {
		if len(ranges) > 0 && !ranges[0].holds(ip) {
			return fmt.Errorf("the provided IP (%v) is not in the valid range. The range of valid IPs is %s", ip,
				ranges[0].prefix)
		}
		return nil
	}
	switch {
	case !slices.ContainsFunc(ranges, func(r addressRange) bool { return r.holds(ip) }):
		return errNoRange
	case a.used(ip):
		return errAddressUsed
	}
	return nil
}

func (a *assignment) used(ip netip.Addr) bool {
	return a.View.Collection(ref.IPAddresses.Prefix).Snapshot().Get("", ip.String()) != nil
}
