// Package candidates elects the holders of Leases for which there are LeaseCandidates (KEP-4355), and collects the
// candidates that no longer renew. It is kube's feature gate CoordinatedLeaderElection, off by default.
//
// Package leaseelection decides; here are the loops, which act through the verbs.
package candidates

import (
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
)

// Part brings the loops of LeaseCandidates. They compete for a Lease of their own, kube-apiserver's, so that of
// servers of both kinds that share an etcd one coordinates.
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
