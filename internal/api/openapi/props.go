package openapi

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/bowsprit/bowsprit/internal/object/sensitive"
)

// Schemas of definitions are encoded for v3 directly, without spec.Schemas: each of these takes a kilobyte, and a
// definition has thousands. Rare parts of schemas go through fromProps and appendSchema, whose output is the rule:
// TestAppendProps compares them byte for byte.

// appendKind appends the JSON of the schema of a custom kind, as returned by kind.
func (p published) appendKind(dst []byte) ([]byte, error) {
	props, masked, err := p.source()
	if err != nil {
		return dst, err
	}
	if props == nil || masked.Whole() || !isPlain(props) {
		s, err := p.kind()
		if err != nil {
			return dst, err
		}
		return appendSchema(dst, s)
	}
	bare := *props
	bare.Properties = nil
	s, err := fromProps(&bare, false)
	if err != nil {
		return dst, err
	}
	markSensitive(s, masked)
	p.embed(s)
	p.identify(s, p.resource.Kind)
	s.SetProperty("metadata", p.refWithDescription(objectMetaName, metadataText))
	s.SetProperty("apiVersion", *typed("string").WithDescription(apiVersionText))
	s.SetProperty("kind", *typed("string").WithDescription(kindText))
	w := propsWriter{p}
	return appendSchemaWith(dst, s, func(out *memberWriter) {
		names := propertyNames(props)
		for name := range s.Properties {
			if _, has := props.Properties[name]; !has {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			if own, has := s.Properties[name]; has {
				out.schema(name, &own)
				continue
			}
			property := props.Properties[name]
			w.member(out, name, &property, below{masked: masked.Property(name)})
		}
	})
}

// source returns the definition's schema, nil if there is none, and its sensitive fields.
func (p published) source() (*apiextensionsv1.JSONSchemaProps, *sensitive.Fields, error) {
	if p.version.Source == nil {
		return nil, nil, nil
	}
	props, err := p.version.Source()
	if err != nil || props == nil {
		return nil, nil, err
	}
	masked, err := p.version.SensitiveFields()
	return props, masked, err
}

// isPlain reports whether p itself has none of the parts left to appendSchema.
func isPlain(p *apiextensionsv1.JSONSchemaProps) bool {
	return p.ExternalDocs == nil && p.Example == nil && p.Ref == nil && !p.XIntOrString && !p.XEmbeddedResource
}

func propertyNames(p *apiextensionsv1.JSONSchemaProps) []string {
	names := make([]string, 0, len(p.Properties)+3) // room for the fields common to all objects
	for name := range p.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// below describes the position of a nested schema.
type below struct {
	junctor bool // below allOf, anyOf, oneOf or not
	masked  *sensitive.Fields
}

type propsWriter struct{ published }

// member writes p as a member of an object.
func (w propsWriter) member(out *memberWriter, name string, p *apiextensionsv1.JSONSchemaProps, at below) {
	out.key(name)
	w.write(out, p, at)
}

// write appends the members of p to out.
func (w propsWriter) write(out *memberWriter, p *apiextensionsv1.JSONSchemaProps, at below) {
	if !isPlain(p) {
		s, err := fromProps(p, at.junctor)
		if err == nil {
			if !at.junctor {
				markSensitive(s, at.masked)
				w.embed(s)
			}
			out.keep(appendSchema(out.dst, s))
			return
		}
		out.keep(out.dst, err)
		return
	}
	whole := at.masked.Whole()
	if whole {
		at.masked = nil
	}
	inner := memberWriter{dst: append(out.dst, '{')}
	inner.extensions(p, whole)
	inner.text("description", p.Description)
	inner.text("type", p.Type)
	inner.flag("nullable", p.Nullable)
	inner.text("format", p.Format)
	inner.text("title", p.Title)
	inner.values(p)
	w.children(&inner, p, at)
	out.keep(append(inner.dst, '}'), inner.err)
}

// extensions writes the extensions of setExtensions, in the order of their names.
func (w *memberWriter) extensions(p *apiextensionsv1.JSONSchemaProps, isSensitive bool) {
	if len(p.XListMapKeys) > 0 {
		w.value("x-kubernetes-list-map-keys", p.XListMapKeys)
	}
	if p.XListType != nil {
		w.value("x-kubernetes-list-type", *p.XListType)
	}
	if p.XMapType != nil {
		w.value("x-kubernetes-map-type", *p.XMapType)
	}
	w.flag(preserveExtension, p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields)
	w.flag(sensitive.Keyword, isSensitive)
	if len(p.XValidations) > 0 {
		w.value("x-kubernetes-validations", p.XValidations)
	}
}

// values writes defaults, bounds, enums and required fields.
func (w *memberWriter) values(p *apiextensionsv1.JSONSchemaProps) {
	if p.Default != nil {
		v, err := value(p.Default)
		if err != nil {
			w.keep(w.dst, fmt.Errorf("default: %w", err))
		} else if v != nil {
			w.value("default", v)
		}
	}
	w.number("maximum", p.Maximum)
	w.flag("exclusiveMaximum", p.ExclusiveMaximum)
	w.number("minimum", p.Minimum)
	w.flag("exclusiveMinimum", p.ExclusiveMinimum)
	w.integer("maxLength", p.MaxLength)
	w.integer("minLength", p.MinLength)
	w.text("pattern", p.Pattern)
	w.integer("maxItems", p.MaxItems)
	w.integer("minItems", p.MinItems)
	w.flag("uniqueItems", p.UniqueItems)
	w.number("multipleOf", p.MultipleOf)
	w.integer("maxProperties", p.MaxProperties)
	w.integer("minProperties", p.MinProperties)
	if len(p.Enum) > 0 {
		of := spec.Schema{}
		w.keep(w.dst, setValues(&of, &apiextensionsv1.JSONSchemaProps{Enum: p.Enum}))
		w.value("enum", of.Enum)
	}
	if len(p.Required) > 0 {
		w.value("required", p.Required)
	}
}

// children writes the schemas inside p.
func (w propsWriter) children(out *memberWriter, p *apiextensionsv1.JSONSchemaProps, at below) {
	inside := at
	if p.Items != nil && p.Items.Schema != nil {
		inside.masked = at.masked.Items()
		w.member(out, "items", p.Items.Schema, inside)
	}
	w.junctor(out, "allOf", p.AllOf)
	w.junctor(out, "oneOf", p.OneOf)
	w.junctor(out, "anyOf", p.AnyOf)
	if p.Not != nil {
		w.member(out, "not", p.Not, below{junctor: true})
	}
	if len(p.Properties) > 0 {
		out.key("properties")
		inner := memberWriter{dst: append(out.dst, '{')}
		for _, name := range propertyNames(p) {
			property := p.Properties[name]
			inside.masked = at.masked.Property(name)
			w.member(&inner, name, &property, inside)
		}
		out.keep(append(inner.dst, '}'), inner.err)
	}
	switch a := p.AdditionalProperties; {
	case a == nil || at.junctor: // Kubernetes does not publish additionalProperties of a junctor
	case a.Schema != nil:
		inside.masked = at.masked.Additional()
		w.member(out, "additionalProperties", a.Schema, inside)
	default:
		out.value("additionalProperties", a.Allows)
	}
}

func (w propsWriter) junctor(out *memberWriter, name string, list []apiextensionsv1.JSONSchemaProps) {
	if len(list) == 0 {
		return
	}
	out.key(name)
	for i := range list {
		out.dst = append(out.dst, "[,"[min(i, 1)])
		w.write(out, &list[i], below{junctor: true})
	}
	out.dst = append(out.dst, ']')
}
