package kinds

import (
	"slices"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// genericWorkload is the feature by which there are groups of pods.
const genericWorkload = "GenericWorkload"

// gates are Kubernetes' feature gates without which it does not serve a kind, whatever the runtime configuration says.
// All of them are off by default.
var gates = map[catalog.GroupResource]string{
	{Group: "certificates.k8s.io", Resource: "clustertrustbundles"}:    "ClusterTrustBundle",
	{Group: "certificates.k8s.io", Resource: "podcertificaterequests"}: "PodCertificateRequest",
	{Group: "scheduling.k8s.io", Resource: "podgroups"}:                genericWorkload,
	{Group: "scheduling.k8s.io", Resource: "workloads"}:                genericWorkload,
}

// closeGates takes versions of kinds out of service, in place, that are behind gates which are not open. It returns
// what it took, as "group/version/resource (feature gate)".
func closeGates(kinds []*catalog.Resource, open []string) (closed []string) {
	for _, r := range kinds {
		gate := gates[catalog.GroupResource{Group: r.Group, Resource: r.Plural}]
		if gate == "" || slices.Contains(open, gate) {
			continue
		}
		for _, v := range r.Versions {
			if v.Served {
				v.Served = false
				closed = append(closed, r.APIVersion(v)+"/"+r.Plural+" (feature gate "+gate+")")
			}
		}
	}
	return closed
}
