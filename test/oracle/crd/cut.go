package crd

import (
	"maps"
	"slices"
	"strings"
)

// cut returns a copy of def with about limit random schemas for each version, and no descriptions. A definition so
// small is validated in a millisecond, where Kubernetes needs up to 100 for a whole one, so each can be mutated
// thousands of times, and all cuts together reach every place.
func (m mutator) cut(def map[string]any, limit int) map[string]any {
	spec, _ := def["spec"].(map[string]any)
	list, _ := spec["versions"].([]any)
	versions := make([]any, len(list))
	for i, v := range list {
		version, _ := v.(map[string]any)
		validation, _ := version["schema"].(map[string]any)
		named := []any{"spec"}
		fields, _ := version["selectableFields"].([]any)
		for _, f := range fields {
			for name := range strings.SplitSeq(f.(map[string]any)["jsonPath"].(string), ".") {
				named = append(named, name)
			}
		}
		version = cloneWithout(version, "schema")
		if s, ok := validation["openAPIV3Schema"].(map[string]any); ok {
			version["schema"] = map[string]any{"openAPIV3Schema": m.cutSchema(s, limit, named)}
		}
		versions[i] = version
	}
	spec = cloneWithout(spec, "versions")
	spec["versions"] = versions
	out := cloneWithout(def, "spec")
	out["spec"] = spec
	return out
}

// cutSchema returns a copy of s with about limit schemas. It keeps properties that other keywords name, so that the
// rest stays valid. named are the names in keywords outside of s.
func (m mutator) cutSchema(s map[string]any, limit int, named []any) map[string]any {
	if def := s["default"]; def != nil {
		return cloneWithout(s, "description")
	}
	out := cloneWithout(s, "description", "items", "additionalProperties", "properties")
	if items, ok := s["items"].(map[string]any); ok {
		keys, _ := s["x-kubernetes-list-map-keys"].([]any)
		out["items"] = m.cutSchema(items, limit-1, append(keys, named...))
	}
	switch more := s["additionalProperties"].(type) {
	case map[string]any:
		out["additionalProperties"] = m.cutSchema(more, limit-1, named)
	case bool:
		out["additionalProperties"] = more
	}
	if all, ok := s["properties"].(map[string]any); ok {
		required, _ := s["required"].([]any)
		named = append(slices.Clone(required), named...)
		props := map[string]any{}
		keep := slices.Sorted(maps.Keys(all))
		m.Shuffle(len(keep), func(i, j int) { keep[i], keep[j] = keep[j], keep[i] })
		first, rest := partition(keep, func(name string) bool { return slices.Contains(named, any(name)) })
		keep = append(first, rest[:min(len(rest), max(0, min(limit-len(first), 2+m.IntN(6))))]...)
		for _, name := range keep {
			if child, ok := all[name].(map[string]any); ok {
				props[name] = m.cutSchema(child, (limit-len(keep))/len(keep), named[len(required):])
			}
		}
		if len(props) > 0 {
			out["properties"] = props
		}
	}
	return out
}

// partition returns the names with and without the property, each in their order.
func partition(all []string, has func(string) bool) (yes, no []string) {
	for _, s := range all {
		if has(s) {
			yes = append(yes, s)
		} else {
			no = append(no, s)
		}
	}
	return yes, no
}

// cloneWithout returns a deep copy of m that lacks some keys.
func cloneWithout(m map[string]any, keys ...string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if !slices.Contains(keys, k) {
			out[k] = cloneJSON(v)
		}
	}
	return out
}

// dropRules removes all CEL rules.
func dropRules(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["x-kubernetes-validations"].([]any); ok {
			delete(v, "x-kubernetes-validations")
		}
		for _, e := range v {
			dropRules(e)
		}
	case []any:
		for _, e := range v {
			dropRules(e)
		}
	}
}

func cloneJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = cloneJSON(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = cloneJSON(e)
		}
		return out
	}
	return v
}
