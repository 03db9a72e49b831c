package openapi

import (
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// lossy reduces s, a schema of v3, to the form that Kubernetes publishes in v2, for validation by old kubectl versions:
// without junctors, without types where null or unknown fields are allowed, without defaults. Rule: "OpenAPI v2 and v3
// schemas", Kubernetes CRD documentation.
func lossy(s *spec.Schema) {
	s.AllOf, s.OneOf, s.AnyOf, s.Not = nil, nil, nil, nil
	s.Default = nil
	if s.Nullable {
		s.Nullable = false
		s.Type, s.Items, s.Properties = nil, nil, nil
	}
	preserve, _ := s.Extensions.GetBool(preserveExtension)
	if preserve {
		s.Items, s.Properties = nil, nil
		if s.Type.Contains("object") {
			s.Type = nil
		}
	}
	if s.Items == nil && s.Type.Contains("array") {
		s.Type = nil // kubectl rejects an array without items
	}
	for name, property := range s.Properties {
		if property.Nullable {
			// The definition owns the slice, so it is copied. If it becomes empty, the keyword is omitted.
			s.Required = slices.DeleteFunc(slices.Clone(s.Required), func(r string) bool { return r == name })
		}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil && s.AdditionalProperties.Schema.Nullable {
		s.Required = nil
	}

	for name, property := range s.Properties {
		lossy(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		lossy(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		lossy(s.AdditionalProperties.Schema)
	}
}
