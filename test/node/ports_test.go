package node

import (
	"path/filepath"
	"slices"
	"testing"
)

// portPackages are iptables, with which the network plugins map host ports to pods, and its libraries, except the ones
// in proxyPackages.
var portPackages = []string{"iptables", "libip4tc2", "libip6tc2", "libnetfilter-conntrack3", "libnfnetlink0"}

func portsFolder(root string) string { return filepath.Join(root, "iptables") }

// unpackPorts is the step of preparation (see onMachine) for wrapPorts.
func unpackPorts(t *testing.T) {
	t.Helper()
	unpack(t, portsFolder(machine(t)), "usr/sbin/xtables-nft-multi", slices.Concat(portPackages, proxyPackages))
}

// wrapPorts makes iptables available to the network plugins. It uses the kernel interface of nft.
func (n *realNode) wrapPorts(t *testing.T) {
	t.Helper()
	for _, name := range []string{"iptables", "ip6tables"} {
		n.wrap(t, name, portsFolder(n.root), "usr/sbin/xtables-nft-multi "+name)
	}
}
