package cluster

// historyOfSimulation is the number of revisions that a server with simulated nodes keeps in etcd: some seconds of
// history while thousands of pods start, and minutes at rest.
const historyOfSimulation = 4_000

// History returns the value of embedded.Config.History; 0 means the default. A simulated pod is written three times
// until it is ready, and its owners are written often too: without a limit, after ten thousand pods half of etcd's
// database was history.
func History(simulated bool) int64 {
	if simulated {
		return historyOfSimulation
	}
	return 0
}

// Alike returns the prefixes of the collections for watchcache.Options.Alike: events, which are written once and seldom
// read, and with simulated nodes also pods and the objects made from them. Components cache the fields of a pod that
// they need, and of the other objects hardly any client reads older states in a collection's history.
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
