package rule

import (
	"strconv"
	"strings"

	"github.com/bowsprit/bowsprit/internal/object"
)

// FieldLabels makes the FieldLabels of paths like "spec.nodeName" with string values.
func FieldLabels(paths ...string) map[string]func(object.Object) string {
	out := map[string]func(object.Object) string{}
	for _, p := range paths {
		out[p] = TextAt(strings.Split(p, ".")...)
	}
	return out
}

// TextAt returns a function that reads the string at the path.
func TextAt(path ...string) func(object.Object) string {
	return func(obj object.Object) string { return object.String(obj, path...) }
}

// TruthAt makes a function that returns "true" or "false"; a missing field is false.
func TruthAt(path ...string) func(object.Object) string {
	return func(obj object.Object) string {
		last := len(path) - 1
		return strconv.FormatBool(object.Map(obj, path[:last]...)[path[last]] == true)
	}
}

// CountAt makes a function that returns a number, 0 if it is missing.
func CountAt(path ...string) func(object.Object) string {
	return func(obj object.Object) string {
		last := len(path) - 1
		n, _ := object.Map(obj, path[:last]...)[path[last]].(int64)
		return strconv.FormatInt(n, 10)
	}
}
