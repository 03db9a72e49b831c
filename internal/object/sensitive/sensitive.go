// Package sensitive masks the values of custom objects that their definition marks with x-kubernetes-sensitive-data.
//
// It stands between what is stored and what is shown: Mask takes sensitive values out of a copy of an object, for
// callers who may not read them and for the audit log, and Unmask puts the stored ones back where a client writes the
// mask. Which fields these are is said by Fields, a tree that has no more of a schema than the ways to its marked
// nodes. A marked node is sensitive as a whole, whatever is below it, and its mask is the string Omitted, whatever its
// type is: the contract of Deckhouse's patches of kube-apiserver (KEP-5933).
//
// The package is pure. Fields are immutable once made, and safe for concurrent use.
package sensitive

import "maps"

// Keyword marks a schema whose values are sensitive.
const Keyword = "x-kubernetes-sensitive-data"

// Omitted is shown instead of a sensitive value.
const Omitted = "<omitted>"

// Fields say what of a value is sensitive. nil means nothing.
type Fields struct {
	// whole is true if the value is sensitive itself; then the rest is empty.
	whole bool
	// properties and additional are of an object: what is below its declared fields, and below all others.
	properties map[string]*Fields
	additional *Fields
	// items are of a list, and keys the fields that tell its items apart, if it is one of type map.
	items *Fields
	keys  []string
}

// Of returns what an OpenAPI schema, decoded JSON, says is sensitive, nil if that is nothing. Junctors (allOf, anyOf,
// oneOf, not) may not hold the keyword.
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

// Union returns what is sensitive by one of two trees or by both. Where both know a list's keys, those of f count.
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

// Property returns what is sensitive of a field of the value.
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

// Additional returns what is sensitive of the fields of the value that its schema does not name.
func (f *Fields) Additional() *Fields {
	if f == nil || f.whole {
		return f
	}
	return f.additional
}

// Items returns what is sensitive of each item of the value.
func (f *Fields) Items() *Fields {
	if f == nil || f.whole {
		return f
	}
	return f.items
}

// At returns what is sensitive of what a path of names leads to: fields of objects, and items of lists, by whatever
// name. Where the value may be either, it is what one of both says.
func (f *Fields) At(path ...string) *Fields {
	for _, name := range path {
		if f == nil || f.whole {
			return f
		}
		f = f.Property(name).Union(f.items)
	}
	return f
}
