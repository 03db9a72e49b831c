package egress

import "net/netip"

// Programs4 and Programs6 are the addresses of pods that are programs on the machines of clients. No network routes
// them: they are reserved for benchmarks (RFC 2544, RFC 5180).
var (
	Programs4 = netip.MustParsePrefix("198.18.0.0/15")
	Programs6 = netip.MustParsePrefix("2001:2::/48")
)

// IsProgram reports whether an address "host:port" is in the ranges.
func IsProgram(address string) bool {
	to, err := netip.ParseAddrPort(address)
	return err == nil && (Programs4.Contains(to.Addr().Unmap()) || Programs6.Contains(to.Addr()))
}

// PreferPrograms returns the addresses, "host:port", in the ranges, or all if there are none. A program of a client
// stands for its Service before the Service's other pods.
func PreferPrograms(all []string) []string {
	var own []string
	for _, address := range all {
		if IsProgram(address) {
			own = append(own, address)
		}
	}
	if own != nil {
		return own
	}
	return all
}
