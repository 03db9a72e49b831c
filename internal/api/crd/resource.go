package crd

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd/own"
	"github.com/bowsprit/bowsprit/internal/api/reshape"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel"
)

// Resource returns the catalog's entry for a definition; a result of DecodeWithoutSchemas is sufficient. revision is
// the etcd revision of the definition's last write. source returns the encoded definition of that revision; it is
// called from any goroutine when a request needs a schema. The resource holds no other reference to the definition.
//
// The names are the accepted ones: a definition with conflicting names stays under its previous names. A definition
// that is not established is in the catalog, where its names count, but is not served.
func Resource(
	def *apiextensionsv1.CustomResourceDefinition, revision int64, source func() ([]byte, error),
) (*catalog.Resource, error) {
	names := &def.Status.AcceptedNames
	r := &catalog.Resource{
		Group:      def.Spec.Group,
		Plural:     def.Spec.Names.Plural,
		Singular:   names.Singular,
		Kind:       names.Kind,
		ListKind:   names.ListKind,
		ShortNames: names.ShortNames,
		Categories: names.Categories,
		Namespaced: def.Spec.Scope == apiextensionsv1.NamespaceScoped,
		Prefix:     def.Spec.Group + "/" + def.Spec.Names.Plural,
		Served:     isTrue(def, apiextensionsv1.Established) && names.Plural == def.Spec.Names.Plural,
		Definition: catalog.Definition{
			Name: def.Name, UID: string(def.UID), Generation: def.Generation, Revision: revision,
		},
	}
	if c := def.Spec.Conversion; c != nil {
		if c.Strategy == apiextensionsv1.WebhookConverter {
			r.Conversion = func() (*apiextensionsv1.WebhookConversion, error) { return decodeConversion(source) }
		}
	}
	if def.Annotations[reshape.Annotation] != "" {
		r.Declared = declared(r, source)
	}
	// The condition becomes False when the objects are gone; the definition may still wait for another finalizer.
	r.Terminating = def.DeletionTimestamp != nil || isTrue(def, apiextensionsv1.Terminating)
	expressions, _ := own.ReadColumns(def.Annotations[own.ColumnsAnnotation]) // checked by the write
	for i := range def.Spec.Versions {
		v := resourceVersion(def, i, source)
		for j := range v.Columns {
			v.Columns[j].Expression = expressions[v.Name][v.Columns[j].Name]
		}
		r.Versions = append(r.Versions, v)
		if def.Spec.Versions[i].Storage {
			r.Storage = v
		}
	}
	if r.Storage == nil {
		return nil, fmt.Errorf("definition %s has no storage version", def.Name)
	}
	slices.SortStableFunc(r.Versions,
		func(a, b *catalog.Version) int { return version.CompareKubeAwareVersionStrings(b.Name, a.Name) })
	return r, nil
}

func resourceVersion(
	def *apiextensionsv1.CustomResourceDefinition, i int, source func() ([]byte, error),
) *catalog.Version {
	from := &def.Spec.Versions[i]
	v := &catalog.Version{
		Name:                  from.Name,
		Declared:              i,
		Served:                from.Served,
		Deprecated:            from.Deprecated,
		PreserveUnknownFields: def.Spec.PreserveUnknownFields,
		Rules:                 cel.Compile,
		Source: func() (*apiextensionsv1.JSONSchemaProps, error) {
			raw, err := source()
			if err != nil {
				return nil, err
			}
			return DecodeSchema(raw, i)
		},
	}
	if from.Deprecated {
		v.Warning = deprecation(&def.Spec, from)
	}
	for _, c := range from.AdditionalPrinterColumns {
		v.Columns = append(v.Columns, catalog.Column{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Priority: c.Priority,
			JSONPath: c.JSONPath,
		})
	}
	for _, f := range from.SelectableFields {
		v.SelectableFields = append(v.SelectableFields, f.JSONPath)
	}
	if s := from.Subresources; s != nil {
		v.Status = s.Status != nil
		if s.Scale != nil {
			v.Scale = &catalog.Scale{
				SpecReplicasPath: s.Scale.SpecReplicasPath, StatusReplicasPath: s.Scale.StatusReplicasPath,
			}
			if s.Scale.LabelSelectorPath != nil {
				v.Scale.LabelSelectorPath = *s.Scale.LabelSelectorPath
			}
		}
	}
	return v
}

// decodeConversion returns the webhook in a stored definition.
func decodeConversion(source func() ([]byte, error)) (*apiextensionsv1.WebhookConversion, error) {
	raw, err := source()
	if err != nil {
		return nil, err
	}
	def, err := DecodeWithoutSchemas(raw)
	if err != nil {
		return nil, err
	}
	if def.Spec.Conversion == nil || def.Spec.Conversion.Webhook == nil ||
		def.Spec.Conversion.Webhook.ClientConfig == nil {
		return nil, fmt.Errorf("definition %s names no conversion webhook", def.Name)
	}
	return def.Spec.Conversion.Webhook, nil
}

// deprecation returns the warning of a deprecated version; the default names the newest version to use instead.
func deprecation(
	spec *apiextensionsv1.CustomResourceDefinitionSpec, v *apiextensionsv1.CustomResourceDefinitionVersion,
) string {
	if v.DeprecationWarning != nil {
		return *v.DeprecationWarning
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", spec.Group, v.Name, spec.Names.Kind)
	newer := v.Name
	for i := range spec.Versions {
		if o := &spec.Versions[i]; o.Served && !o.Deprecated &&
			version.CompareKubeAwareVersionStrings(newer, o.Name) < 0 {
			newer = o.Name
		}
	}
	if newer != v.Name {
		text += fmt.Sprintf("; use %s/%s %s", spec.Group, newer, spec.Names.Kind)
	}
	return text
}

// ClaimOf returns the names that a resource of the catalog holds.
func ClaimOf(r *catalog.Resource) Claim {
	return Claim{Definition: r.Definition.Name, Names: apiextensionsv1.CustomResourceDefinitionNames{
		Plural: r.Plural, Singular: r.Singular, ShortNames: r.ShortNames, Kind: r.Kind, ListKind: r.ListKind,
		Categories: r.Categories,
	}}
}

// Claims returns the names that the definitions of a group hold, but for the named definition.
func Claims(s *catalog.Snapshot, group, except string) (claims []Claim) {
	if s == nil {
		return nil
	}
	if g := s.Group(group); g != nil {
		g.Each(func(r *catalog.Resource) {
			if r.Custom() && r.Definition.Name != except {
				claims = append(claims, ClaimOf(r))
			}
		})
	}
	return claims
}
