package schema

import (
	"maps"
	"slices"
	"strconv"
)

// Paths are written as field.Path prints them: "spec.list[0]", "spec.map[key]".

func childPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func keyPath(path, key string) string { return path + "[" + key + "]" }

func indexPath(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// sortedKeys makes reports deterministic.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
