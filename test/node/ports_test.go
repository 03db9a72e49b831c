package node

import (
	"path/filepath"
	"slices"
	"testing"
)

// portPackages are iptables, by which the network plugins lead ports of the node to pods, and its libraries that
// proxyPackages has not.
var portPackages = []string{"iptables", "libip4tc2", "libip6tc2", "libnetfilter-conntrack3", "libnfnetlink0"}

func portsFolder(root string) string { return filepath.Join(root, "iptables") }

// unpackPorts is the step of preparation (see onMachine) for wrapPorts.
func unpackPorts(t *testing.T) {
	t.Helper()
	unpack(t, portsFolder(machine(t)), "usr/sbin/xtables-nft-multi", slices.Concat(portPackages, proxyPackages))
}

// wrapPorts has the network plugins find iptables, which asks the kernel as nft does.
func (n *realNode) wrapPorts(t *testing.T) {
	t.Helper()
	for _, name := range []string{"iptables", "ip6tables"} {
		n.wrap(t, name, portsFolder(n.root), "usr/sbin/xtables-nft-multi "+name)
	}
}
