package address

import (
	"math/rand/v2"
	"net/netip"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Part adds the allocation of addresses from ranges, and of node ports from ports.
func Part(ranges []netip.Prefix, ports utilnet.PortRange) part.Part {
	return part.Part{
		Name: "addresses of services",
		Resources: func(_ *part.Host, resources []*catalog.Resource) []*catalog.Resource {
			Install(resources, ranges)
			return resources
		},
		Handlers: func(h *part.Host) part.Handlers {
			return part.Handlers{Allocators: map[string]verb.Allocator{
				"services": New(Config{
					View: h.View, Ranges: ranges, NodePorts: ports, Random: rand.Uint64N,
					Off: func() []string { return h.Catalog.Snapshot().Resource("", "services").Strategy.Off },
				}),
			}}
		},
	}
}
