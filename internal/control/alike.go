package control

// Alike returns the prefixes of the collections that watchcache.Options.Alike is for: events, which are written once
// and read seldom, and those of simulated nodes: pods, of which controllers keep what they need, and Leases.
func Alike(simulated bool) []string {
	if simulated {
		return []string{"events", "leases", "pods"}
	}
	return []string{"events"}
}
