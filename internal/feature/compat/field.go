package compat

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// field compares the schema of a field with its new state, and the fields below it.
func (c *comparison) field(was, is *apiextensionsv1.JSONSchemaProps, path, at string) {
	f := &fieldComparison{c, was, is, path, at}
	f.types()
	f.values()
	f.bounds()
	f.text()
	f.required()
	f.structure()
	f.rules()
	f.below()
}

// fieldComparison compares one field.
type fieldComparison struct {
	*comparison
	was, is  *apiextensionsv1.JSONSchemaProps
	path, at string
}

func (f *fieldComparison) add(class Class, keyword, text string, args ...any) {
	f.comparison.add(class, f.path, f.at+"."+keyword, text, args...)
}

// types compares the types of the values.
func (f *fieldComparison) types() {
	if was, is := typeOf(f.was), typeOf(f.is); was != is {
		f.add(Type, "type", "the type changes from %s to %s", was, is)
	}
	switch {
	case f.was.Nullable && !f.is.Nullable:
		f.add(Nullable, "nullable", "null is no longer allowed")
	case !f.was.Nullable && f.is.Nullable:
		f.add(NullableAddition, "nullable", "null is allowed")
	}
	f.changed(Format, "format", f.was.Format, f.is.Format)
}

// typeOf returns the type of a field, as in "integer or string".
func typeOf(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return "integer or string"
	case s.Type == "":
		return "any"
	}
	return s.Type
}

// changed compares a constraint with a text.
func (f *fieldComparison) changed(class Class, keyword, was, is string) {
	switch {
	case was == is:
	case is == "":
		f.add(Loosening, keyword, "the %s %q is removed", keyword, was)
	case was == "":
		f.add(class, keyword, "the %s %q is added", keyword, is)
	default:
		f.add(class, keyword, "the %s changes from %q to %q", keyword, was, is)
	}
}

// values compares enum and default.
func (f *fieldComparison) values() {
	was, is := rawValues(f.was.Enum), rawValues(f.is.Enum)
	removed, added := without(was, is), without(is, was)
	switch {
	case len(was) == 0 && len(is) > 0:
		f.add(Enum, "enum", "only these values are allowed: %s", strings.Join(is, ", "))
	case len(is) == 0 && len(was) > 0:
		f.add(Loosening, "enum", "the list of allowed values is removed")
	default:
		if len(removed) > 0 {
			f.add(Enum, "enum", "these values are no longer allowed: %s", strings.Join(removed, ", "))
		}
		if len(added) > 0 {
			f.add(EnumAddition, "enum", "these values are new: %s", strings.Join(added, ", "))
		}
	}
	switch was, is := f.was.Default, f.is.Default; {
	case was == nil && is != nil:
		f.add(Default, "default", "the default %s is added", is.Raw)
	case was != nil && is == nil:
		f.add(Default, "default", "the default %s is removed", was.Raw)
	case was != nil && !bytes.Equal(was.Raw, is.Raw):
		f.add(Default, "default", "the default changes from %s to %s", was.Raw, is.Raw)
	}
}

// rawValues returns the distinct JSON texts of values.
func rawValues(all []apiextensionsv1.JSON) (texts []string) {
	for _, v := range all {
		if text := string(v.Raw); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// without returns the elements of a that are not in b.
func without(a, b []string) (rest []string) {
	for _, v := range a {
		if !slices.Contains(b, v) {
			rest = append(rest, v)
		}
	}
	return rest
}

// text compares pattern and the documentation.
func (f *fieldComparison) text() {
	f.changed(Pattern, "pattern", f.was.Pattern, f.is.Pattern)
	if f.was.Description != f.is.Description || f.was.Title != f.is.Title ||
		!equality.Semantic.DeepEqual(f.was.ExternalDocs, f.is.ExternalDocs) ||
		!equality.Semantic.DeepEqual(f.was.Example, f.is.Example) {
		f.add(Description, "description", "the documentation changes")
	}
}

// required compares the lists of required fields. A new one with a default is set in stored objects when they are read.
func (f *fieldComparison) required() {
	for _, name := range f.is.Required {
		if slices.Contains(f.was.Required, name) {
			continue
		}
		class, text := Required, "the field %s becomes required"
		if f.is.Properties[name].Default != nil {
			class, text = RequiredWithDefault, "the field %s becomes required and has a default"
		}
		f.add(class, "required", text, name)
	}
	if gone := without(f.was.Required, f.is.Required); len(gone) > 0 {
		f.add(Loosening, "required", "these fields are no longer required: %s", strings.Join(gone, ", "))
	}
}

// structure compares the keywords of Kubernetes and the branches.
func (f *fieldComparison) structure() {
	if was, is := orElse(f.was.XListType, "atomic"), orElse(f.is.XListType, "atomic"); was != is {
		f.add(ListType, "x-kubernetes-list-type", "the list type changes from %s to %s", was, is)
	}
	if was, is := f.was.XListMapKeys, f.is.XListMapKeys; !slices.Equal(was, is) {
		f.add(ListType, "x-kubernetes-list-map-keys", "the keys of the list change from %v to %v", was, is)
	}
	if was, is := orElse(f.was.XMapType, "granular"), orElse(f.is.XMapType, "granular"); was != is {
		f.add(MapType, "x-kubernetes-map-type", "the map type changes from %s to %s", was, is)
	}
	if f.was.XEmbeddedResource != f.is.XEmbeddedResource {
		f.add(EmbeddedResource, "x-kubernetes-embedded-resource", "x-kubernetes-embedded-resource changes to %t",
			f.is.XEmbeddedResource)
	}
	const preserve = "x-kubernetes-preserve-unknown-fields"
	switch was, is := isTrue(f.was.XPreserveUnknownFields), isTrue(f.is.XPreserveUnknownFields); {
	case was && !is:
		f.add(PreserveUnknownFields, preserve, "unknown fields are no longer preserved")
	case is && !was:
		f.add(Loosening, preserve, "unknown fields are preserved")
	}
	f.branch("allOf", f.was.AllOf, f.is.AllOf)
	f.branch("anyOf", f.was.AnyOf, f.is.AnyOf)
	f.branch("oneOf", f.was.OneOf, f.is.OneOf)
	f.branch("not", listOf(f.was.Not), listOf(f.is.Not))
}

// branch compares schemas of a keyword as a whole: a change of one may allow less or more.
func (f *fieldComparison) branch(keyword string, was, is []apiextensionsv1.JSONSchemaProps) {
	switch {
	case equality.Semantic.DeepEqual(was, is):
	case len(is) == 0:
		f.add(Loosening, keyword, "%s is removed", keyword)
	default:
		f.add(Composition, keyword, "%s changes", keyword)
	}
}

func listOf(s *apiextensionsv1.JSONSchemaProps) []apiextensionsv1.JSONSchemaProps {
	if s == nil {
		return nil
	}
	return []apiextensionsv1.JSONSchemaProps{*s}
}

func orElse(s *string, other string) string {
	if s == nil || *s == "" {
		return other
	}
	return *s
}

func isTrue(b *bool) bool { return b != nil && *b }

// rules compares the CEL rules by their expressions. Their messages and reasons change no result.
func (f *fieldComparison) rules() {
	text := func(rules apiextensionsv1.ValidationRules) (all []string) {
		for _, r := range rules {
			text := r.Rule
			if isTrue(r.OptionalOldSelf) {
				text += " (optionalOldSelf)"
			}
			all = append(all, text)
		}
		return all
	}
	was, is := text(f.was.XValidations), text(f.is.XValidations)
	for _, rule := range without(is, was) {
		f.add(Validations, "x-kubernetes-validations", "the rule %q is added", rule)
	}
	for _, rule := range without(was, is) {
		f.add(Loosening, "x-kubernetes-validations", "the rule %q is removed", rule)
	}
}

// below compares the fields, items and values of the field.
func (f *fieldComparison) below() {
	for _, name := range slices.Sorted(maps.Keys(f.was.Properties)) {
		was, path := f.was.Properties[name], strings.TrimPrefix(f.path+"."+name, ".")
		is, ok := f.is.Properties[name]
		switch {
		case ok:
			f.field(&was, &is, path, f.at+".properties["+name+"]")
		case f.is.AdditionalProperties != nil && f.is.AdditionalProperties.Schema != nil:
			f.field(&was, f.is.AdditionalProperties.Schema, path, f.at+".additionalProperties")
		default:
			f.comparison.add(ExistingFieldRemoval, path, f.at+".properties", "the field is removed")
		}
	}
	f.element(itemsOf(f.was), itemsOf(f.is), "items")
	f.element(valuesOf(f.was), valuesOf(f.is), "additionalProperties")
	if was, is := allowsOthers(f.was), allowsOthers(f.is); was && !is {
		f.add(AdditionalProperties, "additionalProperties", "other fields are no longer allowed")
	}
}

// element compares the schemas of the elements of a list or map.
func (f *fieldComparison) element(was, is *apiextensionsv1.JSONSchemaProps, keyword string) {
	path := f.path + "[*]"
	switch {
	case was != nil && is != nil:
		f.field(was, is, path, f.at+"."+keyword)
	case was != nil:
		f.comparison.add(ExistingFieldRemoval, path, f.at, "the schema of the elements is removed")
	case is != nil && f.was.Type == f.is.Type:
		f.comparison.add(AdditionalProperties, path, f.at+"."+keyword, "the elements have a schema now")
	}
}

func itemsOf(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if s.Items == nil {
		return nil
	}
	return s.Items.Schema
}

func valuesOf(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if s.AdditionalProperties == nil {
		return nil
	}
	return s.AdditionalProperties.Schema
}

// allowsOthers reports whether a schema allows any further fields.
func allowsOthers(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.AdditionalProperties != nil && s.AdditionalProperties.Schema == nil && s.AdditionalProperties.Allows
}
