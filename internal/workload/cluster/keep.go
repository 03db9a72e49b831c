package cluster

import (
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// historyOfSimulation is how many revisions of its history a server with simulated nodes keeps in etcd: those of some
// seconds in which thousands of pods start, of minutes at rest.
const historyOfSimulation = 4_000

// History returns what store.Embedded.History is to be. Each simulated pod is written three times until it is ready,
// and its owners with many of them, so that after ten thousand pods half of etcd's database was history.
func History(simulated bool) int64 {
	if simulated {
		return historyOfSimulation
	}
	return 0
}

// StorageMediaType returns what built-in kinds are stored in if the configuration does not say so, "" being JSON. Pages
// of etcd's database are memory of the process. others is true if other programs may look into the store, which know
// protobuf.
func StorageMediaType(simulated, others bool) string {
	switch {
	case !simulated:
		return ""
	case others:
		return codec.Protobuf
	}
	return convert.CompressedJSON
}

// Alike returns the prefixes of the collections that watchcache.Options.Alike is for: events, which are written once
// and read seldom, and with simulated nodes also what pods are and what is made of them: components keep what they need
// of a pod, and of the others hardly anyone reads more than the latest of the states that a collection's history holds.
func Alike(simulated bool) []string {
	if !simulated {
		return []string{eventsKind.Prefix}
	}
	return []string{
		eventsKind.Prefix, Pods.Prefix, Leases.Prefix, Nodes.Prefix, Deployments.Prefix, ReplicaSets.Prefix,
		ReplicationControllers.Prefix, StatefulSets.Prefix, DaemonSets.Prefix, Jobs.Prefix, Endpoints.Prefix,
		EndpointSlices.Prefix,
	}
}
