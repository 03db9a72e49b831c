package pod

import (
	"github.com/bowsprit/bowsprit/internal/object"
)

// dropGated drops from a pod spec the fields behind disabled feature gates of Kubernetes 1.36, unless old has some of
// them. old is nil for a new object.
func dropGated(spec, old object.Object) {
	if hasStopSignal(old) {
		return
	}
	for _, c := range ContainersOf(spec) {
		if lifecycle, ok := c["lifecycle"].(map[string]any); ok && lifecycle["stopSignal"] != nil {
			delete(lifecycle, "stopSignal")
			if len(lifecycle) == 0 {
				delete(c, "lifecycle")
			}
		}
	}
}

// ContainersOf returns the containers of a pod, including init and ephemeral ones.
func ContainersOf(spec object.Object) (out []object.Object) {
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		out = append(out, object.Objects(spec[list])...)
	}
	return out
}

func hasStopSignal(spec object.Object) bool {
	for _, c := range ContainersOf(spec) {
		if lifecycle, _ := c["lifecycle"].(map[string]any); lifecycle["stopSignal"] != nil {
			return true
		}
	}
	return false
}

// DropGatedAt returns the DropGated of a kind that has the spec of a pod, or of the pods to be made, at the path.
func DropGatedAt(path ...string) func(obj, old object.Object) {
	return func(obj, old object.Object) { dropGated(object.Map(obj, path...), object.Map(old, path...)) }
}
