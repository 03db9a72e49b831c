package cluster

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
