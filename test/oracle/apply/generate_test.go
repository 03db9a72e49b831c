package apply

import (
	"fmt"
	"math/rand/v2"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// generator makes random structural schemas and objects for them. Names are few, so that objects meet.
type generator struct{ *rand.Rand }

func (g generator) one(n int) bool { return g.IntN(n) == 0 }

func (g generator) pick(names ...string) string { return names[g.IntN(len(names))] }

func ptr[T any](v T) *T { return &v }

// schema returns the schema of a whole object.
func (g generator) schema() *apiextensionsv1.JSONSchemaProps {
	root := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": *g.object(3), "status": *g.object(2),
	}}
	if g.one(4) {
		root.Properties["extra"] = *g.node(2)
	}
	if g.one(6) {
		root.XPreserveUnknownFields = ptr(true)
	}
	return root
}

// alter returns s with some lists and maps changed between atomic and granular, and some fields removed or added.
func (g generator) alter(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	s = s.DeepCopy()
	if s.Type == "object" && !s.XEmbeddedResource && g.one(4) {
		s.XMapType = ptr(g.pick("atomic", "granular"))
	}
	if s.Type == "array" && g.one(3) {
		if s.XListType != nil && *s.XListType != "atomic" {
			s.XListType, s.XListMapKeys = ptr("atomic"), nil
		} else if _, ok := s.Items.Schema.Properties["name"]; ok {
			s.XListType, s.XListMapKeys = ptr("map"), []string{"name"}
		}
	}
	for name, child := range s.Properties {
		if g.one(30) {
			delete(s.Properties, name)
		} else {
			s.Properties[name] = *g.alter(&child)
		}
	}
	if g.one(20) && s.Type == "object" && s.Properties != nil {
		s.Properties["f4"] = *g.node(1)
	}
	if s.Items != nil {
		s.Items.Schema = g.alter(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		s.AdditionalProperties.Schema = g.alter(s.AdditionalProperties.Schema)
	}
	return s
}

func (g generator) node(depth int) *apiextensionsv1.JSONSchemaProps {
	kind := g.IntN(10)
	if depth <= 0 {
		kind = g.IntN(4)
	}
	switch kind {
	case 0:
		return &apiextensionsv1.JSONSchemaProps{Type: "string", Format: g.pick("", "", "byte", "date-time", "hostname")}
	case 1:
		return &apiextensionsv1.JSONSchemaProps{Type: g.pick("integer", "number")}
	case 2:
		return &apiextensionsv1.JSONSchemaProps{Type: "boolean", Nullable: g.one(2)}
	case 3:
		if g.one(2) {
			return &apiextensionsv1.JSONSchemaProps{XIntOrString: true}
		}
		return &apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: ptr(true)}
	case 4:
		return &apiextensionsv1.JSONSchemaProps{
			Type:                 "object",
			AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: g.node(depth - 1)},
		}
	case 5:
		if g.one(3) {
			return &apiextensionsv1.JSONSchemaProps{
				Type: "object", XEmbeddedResource: true, XPreserveUnknownFields: ptr(true),
			}
		}
		return g.array(depth)
	case 6, 7:
		return g.array(depth)
	default:
		return g.object(depth)
	}
}

func (g generator) object(depth int) *apiextensionsv1.JSONSchemaProps {
	s := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for i := range 1 + g.IntN(4) {
		s.Properties[fmt.Sprintf("f%d", i)] = *g.node(depth - 1)
	}
	switch g.IntN(8) {
	case 0:
		s.XPreserveUnknownFields = ptr(true)
	case 1:
		s.XMapType = ptr("atomic")
	case 2:
		s.XMapType = ptr("granular")
	}
	return s
}

func (g generator) array(depth int) *apiextensionsv1.JSONSchemaProps {
	s := &apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{}}
	switch g.IntN(4) {
	case 0:
		s.Items.Schema = g.node(depth - 1)
		if g.one(2) {
			s.XListType = ptr("atomic")
		}
	case 1:
		s.XListType = ptr("set")
		s.Items.Schema = &apiextensionsv1.JSONSchemaProps{Type: g.pick("string", "integer", "boolean")}
	default:
		s.XListType = ptr("map")
		item := g.object(depth)
		item.XMapType, item.XPreserveUnknownFields = nil, nil
		item.Properties["name"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		s.XListMapKeys = []string{"name"}
		item.Required = []string{"name"}
		switch g.IntN(4) {
		case 0:
			item.Properties["port"] = apiextensionsv1.JSONSchemaProps{
				Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte("80")},
			}
			s.XListMapKeys = []string{"port", "name"}
		case 1:
			item.Properties["port"] = apiextensionsv1.JSONSchemaProps{Type: "integer"}
			s.XListMapKeys = []string{"name", "port"}
			item.Required = append(item.Required, "port")
		}
		s.Items.Schema = item
	}
	return s
}

// value returns a value for s. fill is the probability, in percent, that a field is set.
func (g generator) value(s *apiextensionsv1.JSONSchemaProps, fill int) any {
	if s.Nullable && g.one(5) || g.one(60) {
		return nil
	}
	if g.one(400) {
		return g.free(1) // of the wrong type, perhaps
	}
	switch s.Type {
	case "string":
		return g.pick("", "a", "b", "c", "<&>", "é")
	case "integer":
		return int64(g.IntN(4))
	case "number":
		if g.one(2) {
			return float64(g.IntN(4)) / 2
		}
		return int64(g.IntN(3))
	case "boolean":
		return g.one(2)
	case "array":
		return g.list(s, fill)
	case "object":
		if s.XEmbeddedResource {
			out := g.free(2)
			m, ok := out.(map[string]any)
			if !ok {
				m = map[string]any{}
			}
			m["apiVersion"], m["kind"] = "v1", g.pick("A", "B")
			if g.one(2) {
				m["metadata"] = g.meta("inner", fill)
			}
			return m
		}
		return g.fields(s, fill)
	}
	if s.XIntOrString {
		if g.one(2) {
			return int64(g.IntN(3))
		}
		return g.pick("1", "x")
	}
	return g.free(2)
}

func (g generator) fields(s *apiextensionsv1.JSONSchemaProps, fill int) map[string]any {
	out := map[string]any{}
	for name, child := range s.Properties {
		if g.IntN(100) < fill {
			out[name] = g.value(&child, fill)
		}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		for range g.IntN(4) {
			out[g.pick("k1", "k2", "k3", "a.b/c")] = g.value(s.AdditionalProperties.Schema, fill)
		}
	}
	if s.XPreserveUnknownFields != nil && g.one(2) {
		out[g.pick("u1", "u2")] = g.free(2)
	}
	return out
}

func (g generator) list(s *apiextensionsv1.JSONSchemaProps, fill int) any {
	out := []any{}
	seen := map[string]bool{}
	for range g.IntN(5) {
		item := g.value(s.Items.Schema, fill)
		if s.XListType != nil && *s.XListType == "map" {
			m, ok := item.(map[string]any)
			if !ok {
				continue
			}
			m["name"] = g.pick("a", "b", "c", "d", "<x>")
			if _, ok := s.Items.Schema.Properties["port"]; ok && g.one(2) {
				m["port"] = int64(80 + g.IntN(2))
			}
		}
		if s.XListType != nil && *s.XListType != "atomic" {
			m, _ := item.(map[string]any)
			key := fmt.Sprint(item)
			if m != nil {
				key = fmt.Sprint(m["name"], m["port"])
			}
			if seen[key] && !g.one(30) {
				continue // duplicates are rare
			}
			if item == nil && !g.one(20) {
				continue
			}
			seen[key] = true
		}
		out = append(out, item)
	}
	return out
}

// free is a value of any form.
func (g generator) free(depth int) any {
	switch n := g.IntN(8); {
	case n == 0:
		return nil
	case n == 1:
		return int64(g.IntN(3))
	case n == 2:
		return g.pick("a", "b")
	case n == 3:
		return g.one(2)
	case n == 4 && depth > 0:
		out := []any{}
		for range g.IntN(3) {
			out = append(out, g.free(depth-1))
		}
		return out
	case depth > 0:
		out := map[string]any{}
		for range g.IntN(3) {
			out[g.pick("x", "y", "z")] = g.free(depth - 1)
		}
		return out
	}
	return "leaf"
}

func (g generator) meta(name string, fill int) map[string]any {
	meta := map[string]any{"name": name}
	pairs := func(keys ...string) map[string]any {
		out := map[string]any{}
		for _, k := range keys {
			if g.one(2) {
				out[k] = g.pick("1", "2")
			}
		}
		return out
	}
	if g.IntN(100) < fill {
		meta["labels"] = pairs("app", "tier", "example.com/x")
	}
	if g.IntN(100) < fill/2 {
		meta["annotations"] = pairs("note", "other")
	}
	if g.IntN(100) < fill/3 {
		meta["finalizers"] = []any{"example.com/" + g.pick("a", "b")}
	}
	if g.IntN(100) < fill/3 {
		meta["ownerReferences"] = []any{
			map[string]any{"apiVersion": "v1", "kind": "X", "name": g.pick("a", "b"), "uid": g.pick("u1", "u2")},
		}
	}
	return meta
}
