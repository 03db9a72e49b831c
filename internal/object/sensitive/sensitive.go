// Package sensitive masks the values of custom objects that their definition marks with x-kubernetes-sensitive-data.
//
// It stands between storage and responses. Mask removes sensitive values from a copy of an object, for callers without
// permission to read them and for the audit log. Unmask restores the stored values where a client writes the mask.
// Fields is the tree of sensitive fields: the part of a schema that leads to its marked nodes. A marked node is
// sensitive with everything below it, and its mask is the string Omitted, whatever its type is: the contract of
// Deckhouse's patches of kube-apiserver (KEP-5933).
//
// The package is pure. Fields are immutable once made, and safe for concurrent use.
package sensitive

import "maps"

// Keyword marks a schema with sensitive values.
const Keyword = "x-kubernetes-sensitive-data"

// Omitted is shown instead of a sensitive value.
const Omitted = "<omitted>"

// Fields are the sensitive parts of a value. nil means none.
type Fields struct {
	// whole is true if the value itself is sensitive; then the other fields are empty.
	whole bool
	// properties and additional are for objects: the Fields of declared fields, and of all others.
	properties map[string]*Fields
	additional *Fields
	// items are the Fields of a list's items; keys are the key fields of a list of type map.
	items *Fields
	keys  []string
}

// Of returns the Fields of an OpenAPI schema, decoded JSON, or nil if nothing is sensitive. Junctors (allOf, anyOf,
// oneOf, not) may not contain the keyword.
func Of(schema map[string]any) *Fields {
	if schema[Keyword] == true {
		return &Fields{whole: true}
	}
	f := &Fields{}
	properties, _ := schema["properties"].(map[string]any)
	for name, v := range properties {
		if below := ofAny(v); below != nil {
			if f.properties == nil {
				f.properties = map[string]*Fields{}
			}
			f.properties[name] = below
		}
	}
	f.additional, f.items = ofAny(schema["additionalProperties"]), ofAny(schema["items"])
	if f.items != nil && schema["x-kubernetes-list-type"] == "map" {
		keys, _ := schema["x-kubernetes-list-map-keys"].([]any)
		for _, key := range keys {
			if name, ok := key.(string); ok {
				f.keys = append(f.keys, name)
			}
		}
	}
	if f.properties == nil && f.additional == nil && f.items == nil {
		return nil
	}
	return f
}

func ofAny(v any) *Fields {
	schema, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	return Of(schema)
}

// Union returns the values that are sensitive by at least one of two trees. If both have keys for a list, f's count.
func (f *Fields) Union(g *Fields) *Fields {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	case f.whole || g.whole:
		return &Fields{whole: true}
	}
	out := &Fields{
		properties: maps.Clone(f.properties), additional: f.additional.Union(g.additional),
		items: f.items.Union(g.items), keys: f.keys,
	}
	if out.keys == nil {
		out.keys = g.keys
	}
	for name, below := range g.properties {
		if out.properties == nil {
			out.properties = map[string]*Fields{}
		}
		out.properties[name] = out.properties[name].Union(below)
	}
	return out
}

// Whole reports whether the value is sensitive as a whole.
func (f *Fields) Whole() bool { return f != nil && f.whole }

// Property returns the Fields of a field of the value.
func (f *Fields) Property(name string) *Fields {
	switch {
	case f == nil:
		return nil
	case f.whole:
		return f
	}
	if below := f.properties[name]; below != nil || f.additional == nil {
		return below
	}
	return f.additional
}

// Additional returns the Fields of the value's fields that its schema does not name.
func (f *Fields) Additional() *Fields {
	if f == nil || f.whole {
		return f
	}
	return f.additional
}

// Items returns the Fields of each item of the value.
func (f *Fields) Items() *Fields {
	if f == nil || f.whole {
		return f
	}
	return f.items
}

// At returns the Fields at a path of names: fields of objects, and items of lists, by any name. If the value may be
// either, it returns their union.
func (f *Fields) At(path ...string) *Fields {
	for _, name := range path {
		if f == nil || f.whole {
			return f
		}
		f = f.Property(name).Union(f.items)
	}
	return f
}
