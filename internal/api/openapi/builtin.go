package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// goType is the description of a type, or of a field's type, from package kinds/gen.
type goType struct {
	Ref                  string             `json:"$ref"`
	Description          string             `json:"description"`
	Type                 string             `json:"type"`
	Format               string             `json:"format"`
	Required             []string           `json:"required"`
	Properties           map[string]*goType `json:"properties"`
	AdditionalProperties *goType            `json:"additionalProperties"`
	Items                *goType            `json:"items"`
	Default              any                `json:"default"`
	ListType             string             `json:"x-kubernetes-list-type"`
	ListMapKeys          []string           `json:"x-kubernetes-list-map-keys"`
	MapType              string             `json:"x-kubernetes-map-type"`
	Model                string             `json:"model"`
	Zero                 any                `json:"zero"`
	PatchStrategy        string             `json:"patchStrategy"`
	PatchMergeKey        string             `json:"patchMergeKey"`
	Kinds                []groupVersionKind `json:"kinds"`
	Unions               []any              `json:"unions"`
	Types                []string           `json:"types"`  // any of these types
	Values               []any              `json:"values"` // one of these values
}

// builtins returns the definitions of a built-in kind, of its list and of all types that they refer to, with the names
// of the Go types as in Kubernetes. It omits types for which p.elsewhere is true, and types in m.
func (p published) builtins(m *models) (map[string]*spec.Schema, error) {
	out := map[string]*spec.Schema{}
	todo := p.builtinRoots(m)
	for len(todo) > 0 {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if out[name] != nil || p.elsewhere != nil && p.elsewhere(name) {
			continue
		}
		s, refs, err := p.builtin(m, name)
		if err != nil {
			return nil, err
		}
		out[name], todo = s, append(todo, refs...)
	}
	if p.v2 {
		for _, s := range out {
			referV2(s)
			if len(s.OneOf) > 0 { // v2 has no oneOf
				s.OneOf, s.Type = nil, spec.StringOrArray{"string"}
			}
		}
	}
	return out, nil
}

// builtinRoots returns the names of the types that refer, directly or not, to all types of a built-in kind.
func (p published) builtinRoots(m *models) []string {
	roots := []string{p.version.Model}
	if p.resource.Answers("list") {
		roots = append(roots, p.version.Model+"List")
	}
	for _, s := range p.resource.Subresources {
		if _, connects := m.Options[s.Kind.Kind]; s.Object || connects || s.Name == "log" {
			continue
		}
		kind := p.kindOf(s.Name)
		roots = append(roots, builtinModelName(kind.Group, kind.Version, kind.Kind))
	}
	return roots
}

// builtin returns one definition and the names that it refers to.
func (p published) builtin(m *models, name string) (s *spec.Schema, refs []string, err error) {
	if raw, ok := m.Schemas[name]; ok {
		if s, err = m.sharedModel(raw); err != nil {
			return nil, nil, fmt.Errorf("decode %s: %w", name, err)
		}
		return s, slices.Collect(maps.Keys(m.closure(name))), nil
	}
	data, err := p.version.Models(name)
	if err != nil {
		return nil, nil, err
	}
	d := &goType{}
	if err := json.Unmarshal(data, d); err != nil {
		return nil, nil, fmt.Errorf("decode %s: %w", name, err)
	}
	s = d.schema(&refs)
	return s, refs, nil
}

func (m *models) sharedModel(raw json.RawMessage) (*spec.Schema, error) {
	s := &spec.Schema{}
	return s, json.Unmarshal(raw, s)
}

// schema returns d as v3 publishes it, and adds the names that it refers to.
func (d *goType) schema(refs *[]string) *spec.Schema {
	return d.published(refs, false)
}

// published returns d as v3 publishes it. An element of a list or a map has no default.
func (d *goType) published(refs *[]string, element bool) *spec.Schema {
	s := &spec.Schema{}
	s.Description = d.Description
	if !element {
		s.Default = d.Default
		if s.Default == nil {
			s.Default = d.Zero
		}
	}
	name := d.Ref
	if d.Model != "" {
		name = d.Model
	}
	d.extend(s)
	if name != "" {
		*refs = append(*refs, name)
		ref := spec.RefSchema(refV3 + name)
		if s.Description == "" && s.Default == nil && len(s.Extensions) == 0 {
			return ref
		}
		s.AllOf = []spec.Schema{*ref}
		return s
	}
	for _, t := range d.Types {
		s.OneOf = append(s.OneOf, *typed(t))
	}
	if d.Type != "" {
		s.Type = spec.StringOrArray{d.Type}
	}
	s.Format, s.Required, s.Enum = d.Format, d.Required, d.Values
	if d.Properties != nil {
		s.Properties = make(map[string]spec.Schema, len(d.Properties))
		for name, property := range d.Properties {
			s.Properties[name] = *property.schema(refs)
		}
	}
	if d.Items != nil {
		s.Items = &spec.SchemaOrArray{Schema: d.Items.published(refs, true)}
	}
	if d.AdditionalProperties != nil {
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: d.AdditionalProperties.published(refs, true)}
	}
	return s
}

// extend adds Kubernetes' extensions.
func (d *goType) extend(s *spec.Schema) {
	text := func(name, v string) {
		if v != "" {
			s.AddExtension(name, v)
		}
	}
	text("x-kubernetes-list-type", d.ListType)
	if d.Model == "" {
		text("x-kubernetes-map-type", d.MapType)
	}
	text("x-kubernetes-patch-strategy", d.PatchStrategy)
	text("x-kubernetes-patch-merge-key", d.PatchMergeKey)
	if len(d.ListMapKeys) > 0 {
		s.AddExtension("x-kubernetes-list-map-keys", slices.Clone(d.ListMapKeys))
	}
	if len(d.Unions) > 0 {
		s.AddExtension("x-kubernetes-unions", d.Unions)
	}
	if len(d.Kinds) > 0 {
		kinds := make([]any, len(d.Kinds))
		for i, k := range d.Kinds {
			kinds[i] = k
		}
		s.AddExtension("x-kubernetes-group-version-kind", kinds)
	}
}
