package openapi

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// Schema returns the v3 schema of a kind with all references resolved. A type nested in itself becomes an object
// without properties. The result is built anew at each call.
func (h *Handler) Schema(r *catalog.Resource, v *catalog.Version) (*spec.Schema, error) {
	p := published{resource: r, version: v}
	m := h.models()
	definitions, err := p.schemas(m)
	if err != nil {
		return nil, err
	}
	for name, raw := range m.closure(objectMetaName) {
		if definitions[name] == nil {
			if definitions[name], err = m.sharedModel(raw); err != nil {
				return nil, fmt.Errorf("decode %s: %w", name, err)
			}
		}
	}
	name := p.name(r.Kind)
	if v.Models != nil {
		name = v.Model
	}
	s := spec.RefSchema(refV3 + name)
	return s, resolver{definitions, map[string]bool{}}.resolve(s)
}

// resolver replaces references by definitions.
type resolver struct {
	definitions map[string]*spec.Schema
	open        map[string]bool // the enclosing definitions
}

// resolve replaces the references in s, owned by the caller, in place. Definitions are not changed.
func (r resolver) resolve(s *spec.Schema) error {
	if name := referred(s); name != "" {
		if r.open[name] {
			*s = *typed("object")
			return nil
		}
		definition := r.definitions[name]
		if definition == nil {
			return fmt.Errorf("there is no definition %s", name)
		}
		r.open[name] = true
		defer delete(r.open, name)
		*s = *definition
	}
	s.Properties = maps.Clone(s.Properties)
	for name, property := range s.Properties {
		if err := r.resolve(&property); err != nil {
			return err
		}
		s.Properties[name] = property
	}
	if a := s.AdditionalProperties; a != nil && a.Schema != nil {
		own := *a.Schema
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: a.Allows, Schema: &own}
		if err := r.resolve(&own); err != nil {
			return err
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		own := *s.Items.Schema
		s.Items = &spec.SchemaOrArray{Schema: &own}
		return r.resolve(&own)
	}
	return nil
}

// referred returns the definition that s refers to, directly or, with a description, inside allOf.
func referred(s *spec.Schema) string {
	if s.Ref.GetURL() != nil {
		return strings.TrimPrefix(s.Ref.String(), refV3)
	}
	for i := range s.AllOf {
		if name := referred(&s.AllOf[i]); name != "" {
			return name
		}
	}
	return ""
}
