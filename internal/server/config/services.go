package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Services configures the addresses and ports of services.
type Services struct {
	// ClusterIPRange is the range of services' addresses: a CIDR, or two of both families divided by a comma. The first
	// is for services that name no family. The service "kubernetes" has the first address. ServiceCIDR objects add
	// further ranges. If it is "", a cluster keeps its range of one IPv4 CIDR; a new cluster gets NewClusterIPRange.
	ClusterIPRange string
	// NewClusterIPRange is the range of a new cluster if ClusterIPRange is "": one IPv4 CIDR, "10.0.0.0/24" by default.
	NewClusterIPRange string
	// NodePortRange is the range of ports on nodes, "30000-32767" by default, both inclusive.
	NodePortRange string
	// AdvertiseAddress is the address at which other machines reach this server, shown in the endpoints of the service
	// "kubernetes". The default is the address to listen on, or the host's address if that is a loopback address or all
	// addresses. Endpoints cannot have a loopback address.
	AdvertiseAddress string

	keepsRange bool // ClusterIPRange was not set
}

// These are the default ranges of addresses and ports for services: kube-apiserver's.
const (
	defaultServiceRange = "10.0.0.0/24"
	defaultNodePorts    = "30000-32767"
)

func (c *Services) setDefaults() {
	c.NewClusterIPRange = cmp.Or(c.NewClusterIPRange, defaultServiceRange)
	c.keepsRange = c.keepsRange || c.ClusterIPRange == ""
	c.ClusterIPRange = cmp.Or(c.ClusterIPRange, c.NewClusterIPRange)
	c.NodePortRange = cmp.Or(c.NodePortRange, defaultNodePorts)
}

func (c *Services) settings() []Setting {
	return []Setting{
		{
			Name: "service-cluster-ip-range",
			Help: "addresses of services, a CIDR or one of each IP family (default: the range of the cluster, " +
				cmp.Or(c.NewClusterIPRange, defaultServiceRange) + " for a new one)",
			Value: &c.ClusterIPRange,
		},
		{
			Name: "service-node-port-range", Help: "node ports of services",
			Value: &c.NodePortRange, Default: defaultNodePorts, Form: Ports,
		},
		{
			Name:  "advertise-address",
			Help:  "address in the endpoints of the service kubernetes (default: that of --bind-address, or the host's)",
			Value: &c.AdvertiseAddress,
		},
	}
}

func (c *Services) validate(p *problems) {
	if r, err := netip.ParsePrefix(cmp.Or(c.NewClusterIPRange, defaultServiceRange)); err != nil || !r.Addr().Is4() {
		p.add("Services.NewClusterIPRange %q is not an IPv4 network: use one such as 10.96.0.0/12",
			c.NewClusterIPRange)
	}
	complete := *c
	complete.setDefaults()
	ranges, err := parseRanges(strings.Split(complete.ClusterIPRange, ","))
	if err != nil {
		p.add("--service-cluster-ip-range %q is not a range of addresses (%w): use one such as 10.0.0.0/24",
			c.ClusterIPRange, err)
	}
	if _, err := parseNodePorts(complete.NodePortRange); err != nil {
		p.add("--service-node-port-range %q is not a range of ports: use one such as 30000-32767", c.NodePortRange)
	}
	if c.AdvertiseAddress == "" {
		return
	}
	ip, err := netip.ParseAddr(c.AdvertiseAddress)
	switch {
	case err != nil:
		p.add("--advertise-address %q is not an IP address: use one such as 192.0.2.1", c.AdvertiseAddress)
	case len(ranges) > 0 && ranges[0].Addr().Is4() != ip.Unmap().Is4():
		p.add("--advertise-address %s must be of the family of --service-cluster-ip-range, %s", c.AdvertiseAddress,
			ranges[0])
	}
}

// ServiceRanges returns the parsed ranges of addresses, which Validate has checked.
func ServiceRanges(c *Services) []netip.Prefix {
	ranges, _ := parseRanges(strings.Split(c.ClusterIPRange, ","))
	return ranges
}

// KeepsServiceRange reports whether a cluster that exists keeps its range.
func KeepsServiceRange(c *Services) bool { return c.keepsRange }

// KubernetesRanges returns the possible ranges of the service "kubernetes". If the range is not set, a cluster may have
// kube-apiserver's default, which was the default of earlier versions.
func KubernetesRanges(c *Services) []netip.Prefix {
	out := ServiceRanges(c)[:1]
	if older := netip.MustParsePrefix(defaultServiceRange); c.keepsRange && older != out[0] {
		out = append(out, older)
	}
	return out
}

// parseRanges parses --service-cluster-ip-range: one network, or two of both families.
func parseRanges(list []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range list {
		prefix, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			return nil, err
		case prefix.Addr().Is6() && prefix.Bits() < 64:
			return nil, fmt.Errorf("%s is larger than a /64", text)
		case prefix.Addr().BitLen()-prefix.Bits() < 3:
			return nil, fmt.Errorf("%s has less than 8 addresses", text)
		}
		out = append(out, prefix.Masked())
	}
	switch {
	case len(out) == 0:
		return nil, errors.New("there is none")
	case len(out) > 2:
		return nil, errors.New("there are more than two")
	case len(out) == 2 && out[0].Addr().Is4() == out[1].Addr().Is4():
		return nil, errors.New("both are of one family")
	}
	return out, nil
}

// NodePorts returns the parsed range of ports, which Validate has checked.
func NodePorts(c *Services) utilnet.PortRange {
	ports, _ := parseNodePorts(c.NodePortRange)
	return ports
}

func parseNodePorts(text string) (utilnet.PortRange, error) {
	r, err := utilnet.ParsePortRange(text)
	if err != nil {
		return utilnet.PortRange{}, err
	}
	if r.Base == 0 || r.Size == 0 {
		return utilnet.PortRange{}, errors.New("there is none")
	}
	return *r, nil
}
