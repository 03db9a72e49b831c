package cluster

import (
	"net/netip"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

const (
	// NodeAnnotation marks simulated nodes; its value is FakeNode.
	NodeAnnotation = "kwok.x-k8s.io/node"
	// FakeNode is the value of NodeAnnotation.
	FakeNode = "fake"
	// DownAnnotation, "true" on a node, has its kubelet fall silent.
	DownAnnotation = "bowsprit.dev/simulate-down"
)

// IsSimulated reports whether an entry is a simulated node.
func IsSimulated(e *watchcache.Entry) bool {
	if e == nil || e.Unreadable() != nil {
		return false
	}
	value, _ := e.Field(`metadata.annotations.kwok\.x-k8s\.io/node`)
	return value == FakeNode
}

// IsDown reports whether an entry, which may be nil, is a node with a simulated kubelet outage.
func IsDown(e *watchcache.Entry) bool {
	if e == nil {
		return false
	}
	value, _ := e.Field(`metadata.annotations.bowsprit\.dev/simulate-down`)
	return value == "true"
}

// IsMeasured reports whether the usage of a node's pods is available: the node is simulated and not down.
func (c *Cluster) IsMeasured(node string) bool {
	e := c.View.Collection(Nodes.Prefix).Snapshot().Get("", node)
	return IsSimulated(e) && !IsDown(e)
}

// nodeRange is where the addresses of simulated nodes are.
var nodeRange = netip.MustParsePrefix("172.16.0.0/12")

// NodeAddress returns the address of a simulated node, made of its name.
func NodeAddress(name string) netip.Addr {
	h := uint32(2166136261) // FNV-1a
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	base := nodeRange.Addr().As4()
	h = (h ^ h>>20) & (1<<20 - 1)
	return netip.AddrFrom4([4]byte{base[0], base[1] | byte(h>>16), byte(h >> 8), byte(h)})
}
