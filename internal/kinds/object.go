package kinds

import (
	"strconv"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// textAt returns a function that reads the string at the path.
func textAt(path ...string) func(catalog.Object) string {
	return func(obj catalog.Object) string { return catalog.Text(obj, path...) }
}

// truthAt makes a function that returns "true" or "false", which a missing field is.
func truthAt(path ...string) func(catalog.Object) string {
	return func(obj catalog.Object) string {
		last := len(path) - 1
		return strconv.FormatBool(catalog.At(obj, path[:last]...)[path[last]] == true)
	}
}

// countAt makes a function that returns a number, 0 if it is missing.
func countAt(path ...string) func(catalog.Object) string {
	return func(obj catalog.Object) string {
		last := len(path) - 1
		n, _ := catalog.At(obj, path[:last]...)[path[last]].(int64)
		return strconv.FormatInt(n, 10)
	}
}

// child returns the object under name, made if it is not there.
func child(obj catalog.Object, name string) catalog.Object {
	c, _ := obj[name].(map[string]any)
	if c == nil {
		c = map[string]any{}
		obj[name] = c
	}
	return c
}

// keep makes the value under name what it is in old. The value is shared with old, which nobody changes.
func keep(obj, old catalog.Object, name string) {
	if v, ok := old[name]; ok {
		obj[name] = v
	} else {
		delete(obj, name)
	}
}

// orElse sets the field to v if it is absent or null.
func orElse(obj catalog.Object, name string, v any) {
	if obj[name] == nil {
		obj[name] = v
	}
}
