package bowsprit

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/bowsprit/bowsprit/internal/feature/services/address"
)

// ServicesConfig configures the addresses and ports of services.
type ServicesConfig struct {
	// ClusterIPRange is the range of services' addresses, "10.0.0.0/24" by default: a CIDR, or two of both families
	// divided by a comma. The first is for services that name no family. The service "kubernetes" has the first
	// address. ServiceCIDR objects add further ranges.
	ClusterIPRange string
	// NodePortRange is the range of ports on nodes, "30000-32767" by default, both inclusive.
	NodePortRange string
	// AdvertiseAddress is the address at which other machines reach this server, shown in the endpoints of the service
	// "kubernetes". The default is the address to listen on, or the host's address if that is a loopback address or all
	// addresses. Endpoints cannot have a loopback address.
	AdvertiseAddress string
}

// These are the default ranges of addresses and ports for services: kube-apiserver's.
const (
	defaultServiceRange = "10.0.0.0/24"
	defaultNodePorts    = "30000-32767"
)

func (c *ServicesConfig) setDefaults() {
	c.ClusterIPRange = cmp.Or(c.ClusterIPRange, defaultServiceRange)
	c.NodePortRange = cmp.Or(c.NodePortRange, defaultNodePorts)
}

func (c *ServicesConfig) settings() []Setting {
	return []Setting{
		{
			Name:  "service-cluster-ip-range",
			Help:  "where services get their addresses from, a CIDR or two of both families (default " + defaultServiceRange + ")",
			Value: &c.ClusterIPRange,
		},
		{
			Name: "service-node-port-range", Help: "where services get their ports on nodes from",
			Value: &c.NodePortRange, Default: defaultNodePorts, Form: Ports,
		},
		{
			Name:  "advertise-address",
			Help:  "address in the endpoints of the service kubernetes (default: that of --bind-address, or the host's)",
			Value: &c.AdvertiseAddress,
		},
	}
}

func (c *ServicesConfig) validate(p *problems) {
	complete := *c
	complete.setDefaults()
	ranges, err := parseServiceRanges(complete.ClusterIPRange)
	if err != nil {
		p.add("--service-cluster-ip-range %q is no range of addresses (%w): use one such as 10.0.0.0/24",
			c.ClusterIPRange, err)
	}
	if _, err := parseNodePorts(complete.NodePortRange); err != nil {
		p.add("--service-node-port-range %q is no range of ports: use one such as 30000-32767", c.NodePortRange)
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

func parseServiceRanges(text string) ([]netip.Prefix, error) {
	return address.ParseRanges(strings.Split(text, ","))
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

// ranges and ports return parsed settings. validate has checked them.
func (c *ServicesConfig) ranges() []netip.Prefix {
	ranges, _ := parseServiceRanges(c.ClusterIPRange)
	return ranges
}

func (c *ServicesConfig) ports() utilnet.PortRange {
	ports, _ := parseNodePorts(c.NodePortRange)
	return ports
}

// reachableByOthers reports whether endpoints may have the address.
func reachableByOthers(ip netip.Addr) bool {
	return ip.IsValid() && !ip.IsLoopback() && !ip.IsUnspecified() && !ip.IsMulticast() && !ip.IsLinkLocalUnicast()
}

// advertised returns the address at which other machines reach the server, determined as by kube-apiserver, in the
// family of the service "kubernetes". The error is the reason if it finds none.
func (c *Config) advertised() (netip.Addr, error) {
	text := c.Services.AdvertiseAddress
	if text == "" {
		ip, err := utilnet.ResolveBindAddress(net.ParseIP(c.Listen.BindAddress))
		if err != nil {
			return netip.Addr{}, err
		}
		text = ip.String()
	}
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, err
	}
	ip = ip.Unmap()
	if first := c.Services.ranges()[0]; !reachableByOthers(ip) || first.Addr().Is4() != ip.Is4() {
		return netip.Addr{},
			fmt.Errorf("%s is no address where others reach the service kubernetes, which is in %s", ip, first)
	}
	return ip, nil
}

// joinAddress returns the address at which nodes reach the server, if it differs from the address to listen on. It is
// the advertised address if one is given, or if the server listens on all addresses.
func (c *Config) joinAddress() (address string, other bool) {
	bound, _ := netip.ParseAddr(c.Listen.BindAddress)
	ip, err := c.advertised()
	if err != nil || c.Services.AdvertiseAddress == "" && !bound.IsUnspecified() {
		return "", false
	}
	return ip.String(), true
}

// joinURL returns where nodes reach the server, which is at own for itself.
func (c *Config) joinURL(own string) string {
	address, other := c.joinAddress()
	u, err := url.Parse(own)
	if !other || err != nil {
		return own
	}
	u.Host = net.JoinHostPort(address, u.Port())
	return u.String()
}

// hosts returns the names and addresses for the server's own certificate, besides the customary ones.
func (c *Config) hosts() []string {
	hosts := []string{c.Listen.BindAddress, address.First(c.Services.ranges()[0]).String()}
	if joined, other := c.joinAddress(); other {
		hosts = append(hosts, joined)
	}
	return hosts
}
