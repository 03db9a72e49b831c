package rule

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/bowsprit/bowsprit/internal/object"
)

// Protocols are the protocols of a port.
var Protocols = []string{"SCTP", "TCP", "UDP"}

// CheckReachableIP requires an address that can receive traffic.
func CheckReachableIP(val *Validation, s string, path *field.Path) {
	ip := netutils.ParseIPSloppy(s)
	switch {
	case ip == nil:
		val.Invalid(path, s, "must be a valid IP address")
	case ip.IsUnspecified():
		val.Invalid(path, s, fmt.Sprintf("may not be unspecified (%v)", s))
	case ip.IsLoopback():
		val.Invalid(path, s, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
	case ip.IsLinkLocalUnicast():
		val.Invalid(path, s, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
	case ip.IsLinkLocalMulticast():
		val.Invalid(path, s, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
	}
}

// StrictAddresses is Kubernetes' feature that rejects leading zeros in addresses, and bits beyond the prefix of ranges.
// Without it both have their meaning from before 1.36.
const StrictAddresses = "StrictIPCIDRValidation"

// IP returns the errors in an address, in a field from before StrictAddresses. Addresses in had, which the object has
// already, are always valid; see OldValues.
func (val *Validation) IP(path *field.Path, s string, had sets.Set[string]) field.ErrorList {
	if had.Has(s) {
		return nil
	}
	return validation.IsValidIPForLegacyField(path, s, !val.Lacks(StrictAddresses), nil)
}

// CIDR is IP for a range.
func (val *Validation) CIDR(path *field.Path, s string, had sets.Set[string]) field.ErrorList {
	if had.Has(s) {
		return nil
	}
	return validation.IsValidCIDRForLegacyField(path, s, !val.Lacks(StrictAddresses), nil)
}

// OldValues returns the values of the old object at path, as values lists them. It calls values once for each path.
func (val *Validation) OldValues(path string, values func(old object.Object) []string) sets.Set[string] {
	if val.Old == nil {
		return nil
	}
	set, ok := val.oldValues[path]
	if !ok {
		set = sets.New(values(val.Old)...)
		if val.oldValues == nil {
			val.oldValues = map[string]sets.Set[string]{}
		}
		val.oldValues[path] = set
	}
	return set
}

// TextsAt returns a function for OldValues: the texts of the list at a path.
func TextsAt(parent, name string) func(old object.Object) []string {
	return func(old object.Object) []string { return Strings(object.Map(old, parent)[name]) }
}

// CheckLoadBalancerAddress validates the ingress point of a load balancer: an address or a name.
func CheckLoadBalancerAddress(val *Validation, in object.Object, path *field.Path) {
	if ip := object.String(in, "ip"); ip != "" {
		had := val.OldValues("ingress", func(old object.Object) (ips []string) {
			for _, e := range Objects(object.Map(old, "status", "loadBalancer")["ingress"]) {
				ips = append(ips, object.String(e, "ip"))
			}
			return ips
		})
		val.Errs = append(val.Errs, val.IP(path.Child("ip"), ip, had)...)
	}
	if name := object.String(in, "hostname"); name != "" {
		val.Invalids(path.Child("hostname"), name, validation.IsDNS1123Subdomain(name))
		if netutils.ParseIPSloppy(name) != nil {
			val.Invalid(path.Child("hostname"), name, "must be a DNS name, not an IP address")
		}
	}
}
