package cluster

// historyOfSimulation is how many revisions of its history a server with simulated nodes keeps in etcd: those of some
// seconds in which thousands of pods start, of minutes at rest.
const historyOfSimulation = 10_000

// History returns what store.Embedded.History is to be. Each simulated pod is written three times until it is ready,
// and its owners with many of them, so that after ten thousand pods half of etcd's database was history.
func History(simulated bool) int64 {
	if simulated {
		return historyOfSimulation
	}
	return 0
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
