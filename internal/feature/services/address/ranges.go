package address

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// DefaultRange is the name of the ServiceCIDR for the flag.
const DefaultRange = "kubernetes"

// addressRange is a network for addresses of services, without its first address and, in IPv4, its last one.
type addressRange struct {
	prefix netip.Prefix
	count  uint64 // of assignable addresses, capped at the maximum for a /64 and larger
	static uint64 // the lowest static ones are reserved for explicit requests while others are free
}

// newRange returns a range. The split is that of KEP-3070.
func newRange(prefix netip.Prefix) addressRange {
	r := addressRange{prefix: prefix.Masked()}
	host := prefix.Addr().BitLen() - prefix.Bits()
	size := uint64(math.MaxUint64)
	if host < 64 {
		size = 1 << host
		r.count = size - 1 // the network's own
	} else {
		r.count = size
	}
	if prefix.Addr().Is4() && r.count > 0 {
		r.count-- // broadcast
	}
	r.static = band(size, 16, 256)
	return r
}

// band returns how many of size values are reserved for explicit requests: size/step, but at least 16 and at most most.
// It is 0 for sizes up to 16.
func band(size, step, most uint64) uint64 {
	if size <= 16 {
		return 0
	}
	return min(max(size/step, 16), most)
}

// at returns address number i of the range, the first being 0.
func (r addressRange) at(i uint64) netip.Addr {
	if r.prefix.Addr().Is4() {
		b := r.prefix.Addr().As4()
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(i+1))
		return netip.AddrFrom4(b)
	}
	b := r.prefix.Addr().As16()
	binary.BigEndian.PutUint64(b[8:], binary.BigEndian.Uint64(b[8:])+i+1)
	return netip.AddrFrom16(b)
}

// holds reports whether the range can assign ip on request.
func (r addressRange) holds(ip netip.Addr) bool {
	return r.prefix.Contains(ip) && r.count > 0 && !ip.Less(r.at(0)) &&
		(r.prefix.Addr().Is6() || !r.at(r.count-1).Less(ip))
}

// free returns an unused address: a random upper one, or a random lower one if all upper ones are used; false if all
// are used.
func (r addressRange) free(random func(uint64) uint64, used func(netip.Addr) bool) (netip.Addr, bool) {
	i, ok := pick(r.static, r.count, random, func(i uint64) bool { return used(r.at(i)) })
	return r.at(i), ok
}

// pick returns a random unused number from static to below count, or else one below static.
func pick(static, count uint64, random func(uint64) uint64, used func(uint64) bool) (uint64, bool) {
	static = min(static, count)
	for _, part := range [][2]uint64{{static, count - static}, {0, static}} {
		first, n := part[0], part[1]
		if n == 0 {
			continue
		}
		start := random(n)
		for i := range n {
			at := start + i
			if at >= n || at < start { // beyond the end, or overflow
				at -= n
			}
			if !used(first + at) {
				return first + at, true
			}
		}
	}
	return 0, false
}

// ranges returns the current ranges for services of a family, the default one first.
func (s *Services) ranges(family corev1.IPFamily) []addressRange {
	var out []addressRange
	s.View.Collection(ref.ServiceCIDRs.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		prefixes, ready := ReadRange(e)
		if e.Deleting || !ready {
			return true
		}
		for _, prefix := range prefixes {
			if familyOf(prefix.Addr().String()) != family {
				continue
			}
			if r := newRange(prefix); e.Name == DefaultRange {
				out = append([]addressRange{r}, out...)
			} else {
				out = append(out, r)
			}
		}
		return true
	})
	return out
}

// ReadRange returns the networks of a stored ServiceCIDR, and whether it may be used, which is true unless its
// condition is False: without a controller it has no condition.
func ReadRange(e *watchcache.Entry) (prefixes []netip.Prefix, ready bool) {
	var obj networkingv1.ServiceCIDR
	if err := json.Unmarshal(e.JSON(), &obj); err != nil {
		return nil, false
	}
	for _, text := range obj.Spec.CIDRs {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			prefixes = append(prefixes, prefix)
		}
	}
	for _, c := range obj.Status.Conditions {
		if c.Type == networkingv1.ServiceCIDRConditionReady {
			return prefixes, c.Status == metav1.ConditionTrue
		}
	}
	return prefixes, true
}

// Contains reports whether a network can assign ip to services.
func Contains(network netip.Prefix, ip netip.Addr) bool { return newRange(network).holds(ip) }

// First returns the first address of a network that services get: that of the service "kubernetes".
func First(network netip.Prefix) netip.Addr { return newRange(network).at(0) }
