// Package candidates elects the holders of Leases with LeaseCandidates (KEP-4355), and deletes expired candidates. It
// is Kubernetes' feature gate CoordinatedLeaderElection, off by default.
//
// Package leaseelection decides; this package has the loops, which write through the verbs.
package candidates

import (
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
)

// Part adds the loops for LeaseCandidates. They compete for kube-apiserver's Lease, so that only one of the servers of
// both kinds that share an etcd coordinates.
func Part(t Times) part.Part {
	election := t.election()
	return part.Part{Name: "coordinated leader election", Loops: []part.Loop{
		{
			Name: "leader-election-controller", Always: true, Workers: 1, Election: election,
			New: func(h *part.Host) control.Reconciler {
				if !served(h) {
					h.Log.Warn(
						"no LeaseCandidates are served: CoordinatedLeaderElection needs --runtime-config=coordination.k8s.io/v1beta1=true")
					return nil
				}
				return &coordination{h}
			},
		},
		{
			Name: "lease-candidate-collector", Always: true, Workers: 1, Election: election,
			New: func(h *part.Host) control.Reconciler {
				if !served(h) {
					return nil
				}
				return &candidates{h}
			},
		},
	}}
}

func served(h *part.Host) bool {
	r := h.Catalog.Snapshot().Resource(candidatesResource.Group, candidatesResource.Resource)
	return r != nil && r.Served
}
