package oraclebuiltins

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	_ "unsafe" // for go:linkname

	core "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/storage"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/services/address"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// Kubernetes does not export the steps of its service storage before the strategy.

//go:linkname normalizeClusterIPs k8s.io/kubernetes/pkg/registry/core/service/storage.normalizeClusterIPs
func normalizeClusterIPs(storage.After, storage.Before)

//go:linkname patchAllocatedValues k8s.io/kubernetes/pkg/registry/core/service/storage.patchAllocatedValues
func patchAllocatedValues(storage.After, storage.Before)

//go:linkname makeAlloc k8s.io/kubernetes/pkg/registry/core/service/storage.makeAlloc
func makeAlloc(core.IPFamily, map[core.IPFamily]ipallocator.Interface, portallocator.Interface) storage.Allocators

//go:linkname initIPFamilyFields k8s.io/kubernetes/pkg/registry/core/service/storage.(*Allocators).initIPFamilyFields
func initIPFamilyFields(*storage.Allocators, storage.After, storage.Before) error

// keepGiven makes the changes before an update, in a cluster that has allocated the old service's addresses. It returns
// false if that fails.
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

//go:linkname defaultOnRead k8s.io/kubernetes/pkg/registry/core/service/storage.(*REST).defaultOnReadService
func defaultOnRead(*storage.REST, *core.Service)

// TestReadMatchesUpstream reads services as servers from before there were lists of addresses and families have stored
// them.
func TestReadMatchesUpstream(t *testing.T) {
	t.Parallel()
	for _, ranges := range []string{"10.0.0.0/24", "fd00::/112,10.0.0.0/24"} {
		var networks []netip.Prefix
		for text := range strings.SplitSeq(ranges, ",") {
			networks = append(networks, netip.MustParsePrefix(text))
		}
		resources := kinds.Resources()
		address.Install(resources, networks)
		services := resources[slices.IndexFunc(resources,
			func(r *catalog.Resource) bool { return r.Kind == "Service" })]
		upstream := &storage.REST{}
		family := reflect.ValueOf(upstream).Elem().FieldByName("primaryIPFamily")
		*(*core.IPFamily)(family.Addr().UnsafePointer()) = map[bool]core.IPFamily{
			false: core.IPv4Protocol, true: core.IPv6Protocol,
		}[networks[0].Addr().Is6()]
		for _, spec := range []string{
			`{}`, `{"clusterIP":"10.0.0.9"}`, `{"clusterIP":"fd00::9"}`, `{"clusterIP":"None"}`,
			`{"clusterIP":"None","selector":{"a":"b"}}`,
			`{"clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9"]}`,
			`{"clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9","fd00::9"]}`,
			`{"clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"PreferDualStack"}`,
			`{"type":"ExternalName","externalName":"a.b","internalTrafficPolicy":"Cluster"}`,
			`{"type":"LoadBalancer","clusterIP":"10.0.0.9","ports":[{"port":80}]}`,
		} {
			c := &comparison{t: t, r: services, kind: "Service", object: spec}
			doc := tree(t,
				[]byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"b"},"spec":`+spec+`}`))
			ours, theirs, ok := c.read(doc)
			if !ok {
				t.Fatal(spec)
			}
			services.Strategy.Read(ours)
			defaultOnRead(upstream, theirs.(*core.Service))
			c.same("read", nil, nil, ours, theirs)
		}
	}
}
