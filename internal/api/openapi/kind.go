package openapi

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// Texts that Kubernetes publishes for the fields that every object has.
const (
	apiVersionText = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources"
	kindText       = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds"
	metadataText   = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
	listMetaText   = "Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds"

	embeddedVersionText = "apiVersion defines the versioned schema of this representation of an object. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources"
	embeddedKindText    = "kind is a string value representing the type of this object. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds"
)

// published is one resource in one version, to be published in an edition of OpenAPI.
type published struct {
	resource *catalog.Resource
	version  *catalog.Version
	v2       bool
	// elsewhere reports whether the definition of a built-in type is in another place and must be omitted; nil means
	// none.
	elsewhere func(name string) bool
}

func (p published) name(kind string) string {
	if p.resource.Custom() {
		return modelName(p.resource.Group, p.version.Name, kind)
	}
	return builtinModelName(p.resource.Group, p.version.Name, kind)
}

func (p published) ref(name string) *spec.Schema {
	if p.v2 {
		return spec.RefSchema(refV2 + name)
	}
	return spec.RefSchema(refV3 + name)
}

// refWithDescription returns a reference with a description, which v3 wraps around the reference and v2 puts beside it.
func (p published) refWithDescription(name, text string) spec.Schema {
	s := p.ref(name)
	if !p.v2 {
		s = spec.ComposedSchema(*s)
	}
	return *s.WithDescription(text)
}

// schemas returns the definitions of the kind and of its list, by name.
func (p published) schemas(m *models) (map[string]*spec.Schema, error) {
	if p.version.Models != nil {
		return p.builtins(m)
	}
	kind, err := p.kind()
	if err != nil {
		return nil, fmt.Errorf("schema of %s in version %s: %w", p.resource.Qualified(), p.version.Name, err)
	}
	return map[string]*spec.Schema{p.name(p.resource.Kind): kind, p.name(p.resource.ListKind): p.list()}, nil
}

func (p published) kind() (*spec.Schema, error) {
	s, err := p.properties()
	if err != nil {
		return nil, err
	}
	p.identify(s, p.resource.Kind)
	return s, nil
}

// properties returns the kind's schema with the fields common to all objects. Where kubectl would treat the properties
// as a complete list and refuse others, there are none.
func (p published) properties() (*spec.Schema, error) {
	props, masked, err := p.source()
	if err != nil {
		return nil, err
	}
	if props == nil {
		return typed("object"), nil
	}
	preserve := p.version.PreserveUnknownFields || props.XPreserveUnknownFields != nil && *props.XPreserveUnknownFields
	if p.v2 && preserve {
		return typed("object"), nil
	}
	s, err := fromProps(props, false)
	if err != nil {
		return nil, err
	}
	markSensitive(s, masked)
	if p.v2 {
		lossy(s)
	}
	s.SetProperty("metadata", p.refWithDescription(objectMetaName, metadataText))
	s.SetProperty("apiVersion", *typed("string").WithDescription(apiVersionText))
	s.SetProperty("kind", *typed("string").WithDescription(kindText))
	p.embed(s)
	return s, nil
}

// embed adds the fields common to all objects to the embedded objects inside s.
func (p published) embed(s *spec.Schema) {
	for name, property := range s.Properties {
		p.embed(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		p.embed(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		p.embed(s.AdditionalProperties.Schema)
	}
	if embedded, _ := s.Extensions.GetBool(embeddedExtension); !embedded {
		return
	}
	if preserve, _ := s.Extensions.GetBool(preserveExtension); preserve && p.v2 {
		return // as in properties
	}
	s.SetProperty("apiVersion", *typed("string").WithDescription(embeddedVersionText))
	s.SetProperty("kind", *typed("string").WithDescription(embeddedKindText))
	s.SetProperty("metadata", p.refWithDescription(objectMetaName, metadataText))
	required := slices.Clone(s.Required)
	for _, name := range []string{"kind", "apiVersion"} {
		if !slices.Contains(required, name) {
			required = append(required, name)
		}
	}
	s.Required = required
}

func (p published) list() *spec.Schema {
	items := spec.ArrayProperty(p.ref(p.name(p.resource.Kind)))
	items.Description = "List of " + p.resource.Plural +
		". More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
	s := typed("object").WithDescription(p.resource.ListKind + " is a list of " + p.resource.Kind).WithRequired("items")
	s.SetProperty("items", *items)
	s.SetProperty("metadata", p.refWithDescription(listMetaName, listMetaText))
	s.SetProperty("apiVersion", *typed("string").WithDescription(apiVersionText))
	s.SetProperty("kind", *typed("string").WithDescription(kindText))
	p.identify(s, p.resource.ListKind)
	return s
}

// identify adds the extensions that identify the kind of a schema.
func (p published) identify(s *spec.Schema, kind string) {
	s.AddExtension("x-kubernetes-group-version-kind", []any{groupVersionKind{p.resource.Group, p.version.Name, kind}})
	if len(p.version.SelectableFields) == 0 {
		return
	}
	fields := make([]any, len(p.version.SelectableFields))
	for i, path := range p.version.SelectableFields {
		fields[i] = map[string]any{"fieldPath": strings.TrimPrefix(path, ".")}
	}
	s.AddExtension("x-kubernetes-selectable-fields", fields)
}

type groupVersionKind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}
