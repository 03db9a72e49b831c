package rule

import (
	"reflect"
	"slices"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// prepareUpdate is the PrepareUpdate rule of kinds that have no other: an update leaves status alone, an update of
// status the rest.
func (k Kind) prepareUpdate(obj, old object.Object, subresource string, _ catalog.Env) {
	if subresource == "status" {
		k.keepAllButStatus(obj, old)
		return
	}
	if k.Status {
		Keep(obj, old, "status")
	}
	if k.Generation && !SameBeyond(obj, old, "metadata", "status") {
		RaiseGeneration(obj, old)
	}
}

// keepAllButStatus leaves status, and metadata: an update of status may change labels and annotations too, but for the
// kinds that came when this was seen as a mistake.
func (k Kind) keepAllButStatus(obj, old object.Object) {
	if k.StatusOnly {
		status := obj["status"]
		KeepAll(obj, old)
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

// SameBeyond reports whether two objects are equal apart from the named fields.
func SameBeyond(a, b object.Object, names ...string) bool {
	a, b = CopyOf(a), CopyOf(b)
	for _, name := range names {
		delete(a, name)
		delete(b, name)
	}
	return same(a, b)
}

// same reports whether two values are equal as Kubernetes compares specs: empty, null and absent lists are equal, which
// matters where a field is written even if it is empty.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			return false
		}
		for name, v := range a {
			if !same(v, b[name]) {
				return false
			}
		}
		for name, v := range b {
			if _, ok := a[name]; !ok && !same(nil, v) {
				return false
			}
		}
		return true
	case []any:
		list, ok := b.([]any)
		return (ok || b == nil) && slices.EqualFunc(a, list, same)
	case nil:
		list, ok := b.([]any)
		return b == nil || ok && len(list) == 0
	}
	return reflect.DeepEqual(a, b)
}

// CountChange raises metadata.generation if spec has changed.
func CountChange(obj, old object.Object) {
	if !same(obj["spec"], old["spec"]) {
		RaiseGeneration(obj, old)
	}
}

// RaiseGeneration sets the generation of obj to old's plus one.
func RaiseGeneration(obj, old object.Object) {
	n, _ := object.Child(old, "metadata")["generation"].(int64)
	object.Child(obj, "metadata")["generation"] = n + 1
}
