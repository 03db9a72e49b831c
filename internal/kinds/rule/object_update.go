package rule

import (
	"time"

	"github.com/bowsprit/bowsprit/internal/object"
)

// Keep copies the value under name from old. The value is shared with old, which no caller changes.
func Keep(obj, old object.Object, name string) {
	if v, ok := old[name]; ok {
		obj[name] = v
	} else {
		delete(obj, name)
	}
}

// SetDefault sets the field to v if it is absent or null.
func SetDefault(obj object.Object, name string, v any) {
	if obj[name] == nil {
		obj[name] = v
	}
}

// KeepAll resets obj to old, except for the metadata that the server itself maintains.
func KeepAll(obj, old object.Object) {
	meta := CopyOf(object.Child(old, "metadata"))
	for _, name := range []string{"managedFields", "resourceVersion"} {
		Keep(meta, object.Child(obj, "metadata"), name)
	}
	clear(obj)
	for name, v := range old {
		obj[name] = v
	}
	obj["metadata"] = meta
}

// CopyOf returns a shallow copy.
func CopyOf(obj object.Object) object.Object {
	out := make(object.Object, len(obj))
	for name, v := range obj {
		out[name] = v
	}
	return out
}

// Stamp returns a time as metadata have it.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
