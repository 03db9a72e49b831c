// Package apps implements the controllers of the group apps, and of ReplicationControllers, for a server that simulates
// workloads.
//
// Each kind has a file with its reads, writes and events, in Kubernetes' order. Other files hold the pure parts:
// numbers, statuses, names, hashes. Names, annotations, conditions and events equal those of Kubernetes 1.37.
package apps

import (
	"slices"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// Part returns the controllers. Feature gates decide on the updates of StatefulSets.
func Part(shared *cluster.Shared, openGates []string) part.Part {
	return part.Part{Name: "controllers of apps", Loops: []part.Loop{
		cluster.Loop("replicaset-controller", workers, func(c *cluster.Cluster) control.Reconciler {
			return &sets[appsReplicaSets]{c, shared.Of(c.Host), appsReplicaSets{}}
		}),
		cluster.Loop("replicationcontroller-controller", workers, func(c *cluster.Cluster) control.Reconciler {
			c.Component, c.User = "replication-controller", control.ControllerUser("replication-controller")
			return &sets[coreControllers]{c, shared.Of(c.Host), coreControllers{}}
		}),
		cluster.Loop("deployment-controller", workers, func(c *cluster.Cluster) control.Reconciler {
			return &deployments{c, shared.Of(c.Host)}
		}),
		cluster.Loop("statefulset-controller", workers, func(c *cluster.Cluster) control.Reconciler {
			s := &statefulSets{Cluster: c, index: shared.Of(c.Host)}
			s.gates.maxUnavailable = slices.Contains(openGates, maxUnavailableGate)
			s.gates.recreate = slices.Contains(openGates, recreateGate)
			return s
		}),
		cluster.Loop("daemonset-controller", workers, func(c *cluster.Cluster) control.Reconciler {
			return &daemonSets{Cluster: c, index: shared.Of(c.Host)}
		}),
	}}
}

// workers is how many objects of a kind are worked on at the same time.
const workers = 5
