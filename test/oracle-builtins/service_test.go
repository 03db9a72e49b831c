package oraclebuiltins

import (
	_ "unsafe" // for go:linkname

	"net/netip"

	core "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/storage"

	"github.com/bowsprit/bowsprit/internal/address"
)

// What Kubernetes' storage of services does before their strategy is not exported.

//go:linkname normalizeClusterIPs k8s.io/kubernetes/pkg/registry/core/service/storage.normalizeClusterIPs
func normalizeClusterIPs(storage.After, storage.Before)

//go:linkname patchAllocatedValues k8s.io/kubernetes/pkg/registry/core/service/storage.patchAllocatedValues
func patchAllocatedValues(storage.After, storage.Before)

//go:linkname makeAlloc k8s.io/kubernetes/pkg/registry/core/service/storage.makeAlloc
func makeAlloc(core.IPFamily, map[core.IPFamily]ipallocator.Interface, portallocator.Interface) storage.Allocators

//go:linkname initIPFamilyFields k8s.io/kubernetes/pkg/registry/core/service/storage.(*Allocators).initIPFamilyFields
func initIPFamilyFields(*storage.Allocators, storage.After, storage.Before) error

// keepGiven does what is done before an update, in a cluster that has the addresses that the old service has. It is false if that
// fails.
func keepGiven(svc, old *core.Service) bool {
	after, before := storage.After{Service: svc}, storage.Before{Service: old}
	patchAllocatedValues(after, before)
	normalizeClusterIPs(after, before)
	if len(old.Spec.IPFamilies) == 0 {
		return true
	}
	families := map[core.IPFamily]ipallocator.Interface{}
	for _, f := range old.Spec.IPFamilies {
		families[f] = nil
	}
	alloc := makeAlloc(old.Spec.IPFamilies[0], families, nil)
	return initIPFamilyFields(&alloc, after, before) == nil
}

// keepFamilies is keepGiven's last step on our side.
func (c *comparison) keepFamilies(obj, old map[string]any) bool {
	spec := old["spec"].(map[string]any)
	var ranges []netip.Prefix
	families, _ := spec["ipFamilies"].([]any)
	for _, f := range families {
		if f == "IPv6" {
			ranges = append(ranges, netip.MustParsePrefix("fd00::/112"))
		} else {
			ranges = append(ranges, netip.MustParsePrefix("10.0.0.0/24"))
		}
	}
	if ranges == nil {
		return true
	}
	return address.New(address.Config{Ranges: ranges}).Families(obj, old) == nil
}
