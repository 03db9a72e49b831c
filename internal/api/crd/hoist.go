package crd

import (
	"bytes"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/api/crd/own"
)

// hoisted is a definition's spec in the form that kube-apiserver validates: parts common to all versions are at the top
// and nil in the versions.
type hoisted struct {
	*apiextensionsv1.CustomResourceDefinitionSpec
	versions     []apiextensionsv1.CustomResourceDefinitionVersion
	validation   *apiextensionsv1.CustomResourceValidation
	subresources *apiextensionsv1.CustomResourceSubresources
	columns      []apiextensionsv1.CustomResourceColumnDefinition
	selectable   []apiextensionsv1.SelectableField
	expressions  own.Columns
}

func hoist(def *apiextensionsv1.CustomResourceDefinition) hoisted {
	spec := &def.Spec
	a := hoisted{CustomResourceDefinitionSpec: spec, versions: slices.Clone(spec.Versions)}
	a.expressions, _ = own.ReadColumns(def.Annotations[own.ColumnsAnnotation]) // checkOwn returns the error
	if len(a.versions) == 0 {
		return a
	}
	first := spec.Versions[0]
	all := func(same func(*apiextensionsv1.CustomResourceDefinitionVersion) bool) bool {
		for i := 1; i < len(spec.Versions); i++ {
			if !same(&spec.Versions[i]) {
				return false
			}
		}
		return true
	}
	type version = apiextensionsv1.CustomResourceDefinitionVersion
	if all(func(v *version) bool { return equality.Semantic.DeepEqual(v.Subresources, first.Subresources) }) {
		a.subresources = first.Subresources
		a.each(func(v *version) { v.Subresources = nil })
	}
	if all(func(v *version) bool { return sameValidation(v.Schema, first.Schema) }) {
		a.validation = first.Schema
		a.each(func(v *version) { v.Schema = nil })
	}
	if all(func(v *version) bool {
		return equality.Semantic.DeepEqual(v.AdditionalPrinterColumns, first.AdditionalPrinterColumns)
	}) {
		a.columns = first.AdditionalPrinterColumns
		a.each(func(v *version) { v.AdditionalPrinterColumns = nil })
	}
	if all(func(v *version) bool { return equality.Semantic.DeepEqual(v.SelectableFields, first.SelectableFields) }) {
		a.selectable = first.SelectableFields
		a.each(func(v *version) { v.SelectableFields = nil })
	}
	return a
}

// computed reports whether a column has an expression, in all versions for the version "".
func (a *hoisted) computed(version, column string) bool {
	if version != "" || len(a.expressions) == 0 {
		return a.expressions.Has(version, column)
	}
	for i := range a.versions {
		if !a.expressions.Has(a.versions[i].Name, column) {
			return false
		}
	}
	return true
}

func (a *hoisted) each(f func(*apiextensionsv1.CustomResourceDefinitionVersion)) {
	for i := range a.versions {
		f(&a.versions[i])
	}
}

// topSchema returns the schema that all versions share, or nil.
func (a *hoisted) topSchema() *apiextensionsv1.JSONSchemaProps {
	if a.validation == nil {
		return nil
	}
	return a.validation.OpenAPIV3Schema
}

// validationOf returns the schema of the first version with that name, or the schema common to all.
func (a *hoisted) validationOf(name string) (v *apiextensionsv1.CustomResourceValidation, ok bool) {
	own := slices.ContainsFunc(a.versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Schema != nil })
	if !own {
		return a.validation, true
	}
	for i := range a.versions {
		if a.versions[i].Name == name {
			return a.versions[i].Schema, true
		}
	}
	return nil, false
}

func schemaOf(v *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if v.Schema == nil {
		return nil
	}
	return v.Schema.OpenAPIV3Schema
}

// sameValidation reports whether two versions have the same schema. Empty and absent lists are the same, as everywhere
// in Kubernetes.
func sameValidation(a, b *apiextensionsv1.CustomResourceValidation) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameSchemaPointer(a.OpenAPIV3Schema, b.OpenAPIV3Schema)
}

func sameSchemaPointer(a, b *apiextensionsv1.JSONSchemaProps) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameSchema(a, b)
}

// sameSchema compares field by field; a test checks that it covers all fields of the type. Reflection takes ten times
// as long.
func sameSchema(a, b *apiextensionsv1.JSONSchemaProps) bool {
	return a.ID == b.ID && a.Schema == b.Schema && same(a.Ref, b.Ref) &&
		a.Description == b.Description && a.Type == b.Type && a.Format == b.Format && a.Title == b.Title &&
		sameRawPointer(a.Default, b.Default) &&
		same(a.Maximum, b.Maximum) && a.ExclusiveMaximum == b.ExclusiveMaximum &&
		same(a.Minimum, b.Minimum) && a.ExclusiveMinimum == b.ExclusiveMinimum &&
		same(a.MaxLength, b.MaxLength) && same(a.MinLength, b.MinLength) && a.Pattern == b.Pattern &&
		same(a.MaxItems, b.MaxItems) && same(a.MinItems, b.MinItems) && a.UniqueItems == b.UniqueItems &&
		same(a.MultipleOf, b.MultipleOf) &&
		slices.EqualFunc(a.Enum, b.Enum, sameRaw) &&
		same(a.MaxProperties, b.MaxProperties) && same(a.MinProperties, b.MinProperties) &&
		slices.Equal(a.Required, b.Required) &&
		sameItems(a.Items, b.Items) &&
		sameList(a.AllOf, b.AllOf) && sameList(a.OneOf, b.OneOf) && sameList(a.AnyOf, b.AnyOf) &&
		sameSchemaPointer(a.Not, b.Not) &&
		sameMap(a.Properties, b.Properties) && sameOrBool(a.AdditionalProperties, b.AdditionalProperties) &&
		sameMap(a.PatternProperties, b.PatternProperties) && sameDependencies(a.Dependencies, b.Dependencies) &&
		sameOrBool(a.AdditionalItems, b.AdditionalItems) && sameMap(a.Definitions, b.Definitions) &&
		same(a.ExternalDocs, b.ExternalDocs) && sameRawPointer(a.Example, b.Example) && a.Nullable == b.Nullable &&
		same(a.XPreserveUnknownFields, b.XPreserveUnknownFields) && a.XEmbeddedResource == b.XEmbeddedResource &&
		a.XIntOrString == b.XIntOrString && slices.Equal(a.XListMapKeys, b.XListMapKeys) &&
		same(a.XListType, b.XListType) && same(a.XMapType, b.XMapType) &&
		slices.EqualFunc(a.XValidations, b.XValidations, sameRule)
}

func same[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func sameRawPointer(a, b *apiextensionsv1.JSON) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameRaw(*a, *b)
}

// sameRaw compares values, not bytes: white space and the order of keys do not count.
func sameRaw(a, b apiextensionsv1.JSON) bool {
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	va, errA := rawValue(a)
	vb, errB := rawValue(b)
	return errA == nil && errB == nil && equality.Semantic.DeepEqual(va, vb)
}

func sameList(a, b []apiextensionsv1.JSONSchemaProps) bool {
	return slices.EqualFunc(a, b, func(x, y apiextensionsv1.JSONSchemaProps) bool { return sameSchema(&x, &y) })
}

func sameMap(a, b map[string]apiextensionsv1.JSONSchemaProps) bool {
	return maps.EqualFunc(a, b, func(x, y apiextensionsv1.JSONSchemaProps) bool { return sameSchema(&x, &y) })
}

func sameItems(a, b *apiextensionsv1.JSONSchemaPropsOrArray) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameSchemaPointer(a.Schema, b.Schema) && sameList(a.JSONSchemas, b.JSONSchemas)
}

func sameOrBool(a, b *apiextensionsv1.JSONSchemaPropsOrBool) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Allows == b.Allows && sameSchemaPointer(a.Schema, b.Schema)
}

func sameDependencies(a, b apiextensionsv1.JSONSchemaDependencies) bool {
	return maps.EqualFunc(a, b, func(x, y apiextensionsv1.JSONSchemaPropsOrStringArray) bool {
		return sameSchemaPointer(x.Schema, y.Schema) && slices.Equal(x.Property, y.Property)
	})
}

func sameRule(a, b apiextensionsv1.ValidationRule) bool {
	return a.Rule == b.Rule && a.Message == b.Message && a.MessageExpression == b.MessageExpression &&
		same(a.Reason, b.Reason) &&
		a.FieldPath == b.FieldPath && same(a.OptionalOldSelf, b.OptionalOldSelf)
}

func rawValue(j apiextensionsv1.JSON) (v any, err error) {
	if len(j.Raw) == 0 {
		return nil, nil
	}
	err = kjson.UnmarshalCaseSensitivePreserveInts(j.Raw, &v)
	return v, err
}
