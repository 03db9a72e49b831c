package kinds

import (
	"slices"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// genericWorkload is the feature for groups of pods.
const genericWorkload = "GenericWorkload"

// gates are the feature gates without which Kubernetes does not serve a kind, whatever the runtime configuration.
var gates = map[catalog.GroupResource]string{
	{Group: "certificates.k8s.io", Resource: "clustertrustbundles"}:          "ClusterTrustBundle",
	{Group: "certificates.k8s.io", Resource: "podcertificaterequests"}:       "PodCertificateRequest",
	{Group: "scheduling.k8s.io", Resource: "podgroups"}:                      genericWorkload,
	{Group: "storagemigration.k8s.io", Resource: "storageversionmigrations"}: "StorageVersionMigrator",
	{Group: "scheduling.k8s.io", Resource: "workloads"}:                      genericWorkload,
}

// closeGates stops serving versions of kinds, in place, with a closed feature gate. It returns them as
// "group/version/resource (feature gate)".
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
