package openapi

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/bowsprit/bowsprit/internal/object/sensitive"
)

// fromProps returns the schema of a definition for v3: all its keywords, including x-kubernetes-*, and with the two
// types of x-kubernetes-int-or-string spelled out.
//
// inJunctor is true below allOf, anyOf, oneOf and not, where a structural schema constrains values and declares no
// fields.
func fromProps(p *apiextensionsv1.JSONSchemaProps, inJunctor bool) (*spec.Schema, error) {
	if p == nil {
		return nil, nil
	}
	s := &spec.Schema{}
	if p.Type != "" {
		s.Type = spec.StringOrArray{p.Type}
	}
	s.Nullable = p.Nullable
	s.Description, s.Title, s.Format = p.Description, p.Title, p.Format
	if p.ExternalDocs != nil {
		s.ExternalDocs = &spec.ExternalDocumentation{Description: p.ExternalDocs.Description, URL: p.ExternalDocs.URL}
	}
	s.Maximum, s.ExclusiveMaximum = p.Maximum, p.ExclusiveMaximum
	s.Minimum, s.ExclusiveMinimum = p.Minimum, p.ExclusiveMinimum
	s.MaxLength, s.MinLength, s.Pattern = p.MaxLength, p.MinLength, p.Pattern
	s.MaxItems, s.MinItems, s.UniqueItems = p.MaxItems, p.MinItems, p.UniqueItems
	s.MaxProperties, s.MinProperties = p.MaxProperties, p.MinProperties
	s.MultipleOf, s.Required = p.MultipleOf, p.Required
	if p.Ref != nil {
		s.Ref = spec.MustCreateRef(*p.Ref)
	}
	if err := setValues(s, p); err != nil {
		return nil, err
	}
	setExtensions(s, p)
	if err := setChildren(s, p, inJunctor); err != nil {
		return nil, err
	}
	if p.XIntOrString && !inJunctor {
		spellIntOrString(s, p)
	}
	return s, nil
}

// setValues decodes the raw JSON in the definition.
func setValues(s *spec.Schema, p *apiextensionsv1.JSONSchemaProps) (err error) {
	if s.Default, err = value(p.Default); err != nil {
		return fmt.Errorf("default: %w", err)
	}
	if s.Example, err = value(p.Example); err != nil {
		return fmt.Errorf("example: %w", err)
	}
	for i := range p.Enum {
		v, err := value(&p.Enum[i])
		if err != nil {
			return fmt.Errorf("enum: %w", err)
		}
		s.Enum = append(s.Enum, v)
	}
	return nil
}

// value decodes j; integers become int64 so that large ones stay exact. Absence and null give nil.
func value(j *apiextensionsv1.JSON) (v any, err error) {
	if j == nil || len(j.Raw) == 0 {
		return nil, nil
	}
	err = utiljson.Unmarshal(j.Raw, &v)
	return v, err
}

func setExtensions(s *spec.Schema, p *apiextensionsv1.JSONSchemaProps) {
	if p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields {
		s.AddExtension(preserveExtension, true)
	}
	if p.XEmbeddedResource {
		s.AddExtension(embeddedExtension, true)
	}
	if p.XIntOrString {
		s.AddExtension("x-kubernetes-int-or-string", true)
	}
	if len(p.XListMapKeys) > 0 {
		s.AddExtension("x-kubernetes-list-map-keys", p.XListMapKeys)
	}
	if p.XListType != nil {
		s.AddExtension("x-kubernetes-list-type", *p.XListType)
	}
	if p.XMapType != nil {
		s.AddExtension("x-kubernetes-map-type", *p.XMapType)
	}
	if len(p.XValidations) > 0 {
		s.AddExtension("x-kubernetes-validations", p.XValidations)
	}
}

const (
	preserveExtension = "x-kubernetes-preserve-unknown-fields"
	embeddedExtension = "x-kubernetes-embedded-resource"
)

func setChildren(s *spec.Schema, p *apiextensionsv1.JSONSchemaProps, inJunctor bool) error {
	if p.Items != nil && p.Items.Schema != nil {
		item, err := fromProps(p.Items.Schema, inJunctor)
		if err != nil {
			return fmt.Errorf("items: %w", err)
		}
		s.Items = &spec.SchemaOrArray{Schema: item}
	}
	if len(p.Properties) > 0 || inJunctor && p.Properties != nil {
		s.Properties = make(map[string]spec.Schema, len(p.Properties))
		for name, property := range p.Properties {
			child, err := fromProps(&property, inJunctor)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			s.Properties[name] = *child
		}
	}
	// Kubernetes does not publish additionalProperties of a junctor.
	if p.AdditionalProperties != nil && !inJunctor {
		child, err := fromProps(p.AdditionalProperties.Schema, false)
		if err != nil {
			return fmt.Errorf("additionalProperties: %w", err)
		}
		s.AdditionalProperties = &spec.SchemaOrBool{
			Allows: p.AdditionalProperties.Allows || child != nil, Schema: child,
		}
	}
	for _, junctor := range []struct {
		to   *[]spec.Schema
		from []apiextensionsv1.JSONSchemaProps
	}{{&s.AllOf, p.AllOf}, {&s.AnyOf, p.AnyOf}, {&s.OneOf, p.OneOf}} {
		for i := range junctor.from {
			child, err := fromProps(&junctor.from[i], true)
			if err != nil {
				return err
			}
			*junctor.to = append(*junctor.to, *child)
		}
	}
	var err error
	s.Not, err = fromProps(p.Not, true)
	return err
}

// spellIntOrString adds anyOf integer, string to s unless the definition already has it, in one of the two places
// allowed in a structural schema.
func spellIntOrString(s *spec.Schema, p *apiextensionsv1.JSONSchemaProps) {
	both := []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}
	if equality.Semantic.DeepEqual(p.AnyOf, both) || len(p.AllOf) > 0 &&
		equality.Semantic.DeepEqual(p.AllOf[0].AnyOf, both) {
		return
	}
	spelled := []spec.Schema{*typed("integer"), *typed("string")}
	if p.AnyOf == nil {
		s.AnyOf = spelled
		return
	}
	s.AllOf = append([]spec.Schema{*spec.ComposedSchema()}, s.AllOf...)
	s.AllOf[0].AnyOf = spelled
}

// markSensitive puts the keyword of sensitive fields where they begin.
func markSensitive(s *spec.Schema, masked *sensitive.Fields) {
	switch {
	case masked == nil || s == nil:
		return
	case masked.Whole():
		s.AddExtension(sensitive.Keyword, true)
		return
	}
	for name, property := range s.Properties {
		markSensitive(&property, masked.Property(name))
		s.Properties[name] = property
	}
	if s.Items != nil {
		markSensitive(s.Items.Schema, masked.Items())
	}
	if s.AdditionalProperties != nil {
		markSensitive(s.AdditionalProperties.Schema, masked.Additional())
	}
}

func typed(t string) *spec.Schema { return new(spec.Schema).Typed(t, "") }
