package kinds

import "github.com/bowsprit/bowsprit/internal/api/catalog"

// CoordinateLeases has the Leases among kinds keep what is about coordinated leader election, as with Kubernetes'
// feature gate CoordinatedLeaderElection.
func CoordinateLeases(kinds []*catalog.Resource) {
	for _, r := range kinds {
		if r.Group == coordinationV1.name && r.Kind == "Lease" {
			r.Strategy.PrepareCreate, r.Strategy.PrepareUpdate = nil, nil
		}
	}
}

// dropCoordination drops from a Lease what is about coordinated leader election, each field unless old has it. old is
// nil for a new object.
func dropCoordination(lease, old catalog.Object) {
	spec, was := catalog.At(lease, "spec"), catalog.At(old, "spec")
	for _, name := range []string{"strategy", "preferredHolder"} {
		if was[name] == nil {
			delete(spec, name)
		}
	}
}

// dropGated drops from the spec of a pod, or of a template of pods, what Kubernetes 1.36 has behind feature gates that
// are off, unless old has some of it. old is nil for a new object.
func dropGated(spec, old catalog.Object) {
	if old["schedulingGroup"] == nil {
		delete(spec, "schedulingGroup")
	}
	for _, source := range []string{"clusterTrustBundle", "podCertificate"} {
		if !hasSource(old, source) {
			for _, s := range sourcesOf(spec) {
				delete(s, source)
			}
		}
	}
	if hasStopSignal(old) {
		return
	}
	for _, c := range containersOf(spec) {
		if lifecycle, ok := c["lifecycle"].(map[string]any); ok && lifecycle["stopSignal"] != nil {
			delete(lifecycle, "stopSignal")
			if len(lifecycle) == 0 {
				delete(c, "lifecycle")
			}
		}
	}
}

func sourcesOf(spec catalog.Object) (out []catalog.Object) {
	for _, v := range catalog.Objects(spec["volumes"]) {
		projected, _ := v["projected"].(map[string]any)
		out = append(out, catalog.Objects(projected["sources"])...)
	}
	return out
}

func hasSource(spec catalog.Object, name string) bool {
	for _, s := range sourcesOf(spec) {
		if s[name] != nil {
			return true
		}
	}
	return false
}

func containersOf(spec catalog.Object) (out []catalog.Object) {
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		out = append(out, catalog.Objects(spec[list])...)
	}
	return out
}

func hasStopSignal(spec catalog.Object) bool {
	for _, c := range containersOf(spec) {
		if lifecycle, _ := c["lifecycle"].(map[string]any); lifecycle["stopSignal"] != nil {
			return true
		}
	}
	return false
}
