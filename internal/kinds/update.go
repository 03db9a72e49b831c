package kinds

import (
	"reflect"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// prepareUpdate is the PrepareUpdate rule of kinds that have no other: an update leaves status alone, an update of
// status the rest.
func (k kind) prepareUpdate(obj, old catalog.Object, subresource string, _ catalog.Env) {
	if subresource == "status" {
		k.keepAllButStatus(obj, old)
		return
	}
	if k.status {
		keep(obj, old, "status")
	}
	if k.generation && !sameBeyond(obj, old, "metadata", "status") {
		raiseGeneration(obj, old)
	}
}

// keepAllButStatus leaves status, and metadata: an update of status may change labels and annotations too, but for the
// kinds that came when this was seen as a mistake.
func (k kind) keepAllButStatus(obj, old catalog.Object) {
	if k.statusOnly {
		status := obj["status"]
		keepAll(obj, old)
		obj["status"] = status
		return
	}
	for name := range obj {
		if name != "metadata" && name != "status" {
			delete(obj, name)
		}
	}
	for name, v := range old {
		if name != "metadata" && name != "status" {
			obj[name] = v
		}
	}
}

// sameBeyond tells whether two objects differ in nothing but the named fields.
func sameBeyond(a, b catalog.Object, names ...string) bool {
	a, b = copyOf(a), copyOf(b)
	for _, name := range names {
		delete(a, name)
		delete(b, name)
	}
	return reflect.DeepEqual(a, b)
}

// countChange raises metadata.generation if spec has changed.
func countChange(obj, old catalog.Object) {
	if !reflect.DeepEqual(obj["spec"], old["spec"]) {
		raiseGeneration(obj, old)
	}
}

func raiseGeneration(obj, old catalog.Object) {
	n, _ := child(old, "metadata")["generation"].(int64)
	child(obj, "metadata")["generation"] = n + 1
}
