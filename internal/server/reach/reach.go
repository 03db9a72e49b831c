// Package reach computes the addresses at which clients, nodes and other servers reach a server. Its functions read the
// configuration and the addresses of the machine, and are safe for concurrent use.
package reach

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/bowsprit/bowsprit/internal/feature/services/address"
	"github.com/bowsprit/bowsprit/internal/server/config"
)

// Advertised returns the address at which other machines reach the server, determined as by kube-apiserver, in the
// family of the service "kubernetes". The error is the reason if it finds none.
func Advertised(c *config.Config) (netip.Addr, error) {
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
	if first := config.ServiceRanges(&c.Services)[0]; !reachableByOthers(ip) || first.Addr().Is4() != ip.Is4() {
		return netip.Addr{},
			fmt.Errorf("%s is no address where others reach the service kubernetes, which is in %s", ip, first)
	}
	return ip, nil
}

// reachableByOthers reports whether endpoints may have the address.
func reachableByOthers(ip netip.Addr) bool {
	return ip.IsValid() && !ip.IsLoopback() && !ip.IsUnspecified() && !ip.IsMulticast() && !ip.IsLinkLocalUnicast()
}

// joinAddress returns the address at which nodes reach the server, if it differs from the address to listen on. It is
// the advertised address if one is given, or if the server listens on all addresses.
func joinAddress(c *config.Config) (address string, other bool) {
	bound, _ := netip.ParseAddr(c.Listen.BindAddress)
	ip, err := Advertised(c)
	if err != nil || c.Services.AdvertiseAddress == "" && !bound.IsUnspecified() {
		return "", false
	}
	return ip.String(), true
}

// JoinURL returns the URL at which nodes reach the server. own is its URL on this machine.
func JoinURL(c *config.Config, own string) string {
	address, other := joinAddress(c)
	u, err := url.Parse(own)
	if !other || err != nil {
		return own
	}
	u.Host = net.JoinHostPort(address, u.Port())
	return u.String()
}

// Hosts returns the names and addresses for the server's own certificate, besides the customary ones.
func Hosts(c *config.Config) []string {
	all := []string{c.Listen.BindAddress}
	for _, network := range config.KubernetesRanges(&c.Services) {
		all = append(all, address.First(network).String())
	}
	if joined, other := joinAddress(c); other {
		all = append(all, joined)
	}
	return all
}

// Local returns an address that a client on this machine can use.
func Local(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return addr.String()
	}
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}
