package crd

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object/schema"
)

func (v *Validator) validateSpec(a *hoisted, l allowances) (errs field.ErrorList) {
	path := field.NewPath("spec")
	add := func(e ...*field.Error) { errs = append(errs, e...) }
	add(checkGroup(a.Group, path.Child("group"))...)
	add(checkEnum(string(a.Scope), path.Child("scope"), string(apiextensionsv1.ClusterScoped),
		string(apiextensionsv1.NamespaceScoped))...)
	add(a.checkSchemasPresent(l, path)...)

	allowNonStructural := l.nonStructural && a.PreserveUnknownFields
	if a.PreserveUnknownFields && a.hasSchema(hasDefault) {
		allowNonStructural = false
		add(field.Invalid(path.Child("preserveUnknownFields"), true,
			"must be false in order to use defaults in the schema"))
	}
	if allowNonStructural && a.hasSchema(hasExtension) {
		allowNonStructural = false
	}
	l.nonStructural = allowNonStructural

	add(v.validateVersions(a, l, path.Child("versions"))...)
	first := ""
	if len(a.versions) > 0 {
		// The internal type repeats the first version's name at the top, and kube-apiserver checks it there, too.
		first = a.versions[0].Name
		if found := utilvalidation.IsDNS1035Label(first); first != "" && len(found) > 0 {
			add(field.Invalid(path.Child("version"), first, strings.Join(found, ",")))
		}
	}
	for _, required := range [...]struct{ name, value string }{
		{"plural", a.Names.Plural}, {"singular", a.Names.Singular}, {"kind", a.Names.Kind},
		{"listKind", a.Names.ListKind},
	} {
		if required.value == "" {
			add(field.Required(path.Child("names", required.name), ""))
		}
	}
	add(checkNames(&a.Names, path.Child("names"))...)
	add(v.validateSchema(a.topSchema(), a.anyStatus(), first, l, path.Child("validation", "openAPIV3Schema"))...)
	add(checkSubresources(a.subresources, path.Child("subresources"))...)
	for i := range a.columns {
		add(checkColumn(&a.columns[i], a.computed("", a.columns[i].Name),
			path.Child("additionalPrinterColumns").Index(i))...)
	}
	if len(a.selectable) > 0 {
		if a.validation == nil {
			add(field.Invalid(path.Child("selectableFields"), "",
				"may only be set when validations.schema is included"))
		} else {
			add(checkSelectable(a.selectable, a.topSchema(), l.manySelectable[""], path)...)
		}
	}
	if c := a.Conversion; c != nil {
		if c.Strategy != apiextensionsv1.NoneConverter && a.PreserveUnknownFields {
			add(field.Invalid(path.Child("conversion", "strategy"), c.Strategy,
				"must be None if spec.preserveUnknownFields is true"))
		}
		add(checkConversion(c, l, path.Child("conversion"))...)
	}
	return errs
}

// validateVersions validates each version, and that there is exactly one storage version.
func (v *Validator) validateVersions(a *hoisted, l allowances, path *field.Path) (errs field.ErrorList) {
	add := func(e ...*field.Error) { errs = append(errs, e...) }
	storage := 0
	names := map[string]bool{}
	for i := range a.versions {
		if v.over() {
			return errs
		}
		version := &a.versions[i]
		at := path.Index(i)
		if version.Storage {
			storage++
		}
		names[version.Name] = true
		if found := utilvalidation.IsDNS1035Label(version.Name); len(found) > 0 {
			add(field.Invalid(at.Child("name"), version.Name, strings.Join(found, ",")))
		}
		add(v.validateVersion(a, version, l, at)...)
	}
	if len(names) != len(a.versions) {
		add(field.Invalid(path, schema.KubeValue(a.versions), "must contain unique version names"))
	}
	if storage != 1 {
		add(field.Invalid(path, schema.KubeValue(a.versions),
			"must have exactly one version marked as storage version"))
	}
	return errs
}

func checkGroup(group string, path *field.Path) field.ErrorList {
	if group == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if found := utilvalidation.IsDNS1123Subdomain(group); len(found) > 0 {
		return field.ErrorList{field.Invalid(path, group, strings.Join(found, ","))}
	}
	if !strings.Contains(group, ".") {
		return field.ErrorList{field.Invalid(path, group, "should be a domain with at least one dot")}
	}
	return nil
}

func checkEnum(value string, path *field.Path, accepted ...string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	for _, a := range accepted {
		if a == value {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, accepted)}
}

// checkSchemasPresent checks that each version has a schema. If the stored definition lacks some, only served versions
// need one.
func (a *hoisted) checkSchemasPresent(l allowances, path *field.Path) (errs field.ErrorList) {
	if a.topSchema() != nil {
		return nil
	}
	for i := range a.versions {
		at := path.Child("versions").Index(i).Child("schema", "openAPIV3Schema")
		switch {
		case schemaOf(&a.versions[i]) != nil:
		case !l.noSchema:
			errs = append(errs, field.Required(at, ""))
		case !a.PreserveUnknownFields && a.versions[i].Served:
			errs = append(errs, field.Required(at, "because otherwise all fields are pruned"))
		}
	}
	return errs
}

// validateVersion checks the parts of one version.
func (v *Validator) validateVersion(
	a *hoisted, version *apiextensionsv1.CustomResourceDefinitionVersion, l allowances, path *field.Path,
) (errs field.ErrorList) {
	for _, problem := range checkDeprecationWarning(version.Deprecated, version.DeprecationWarning) {
		errs = append(errs, field.Invalid(path.Child("deprecationWarning"), version.DeprecationWarning, problem))
	}
	errs = append(errs,
		v.validateSchema(schemaOf(version), hasStatus(a.subresourcesOf(version.Name)), version.Name, l,
			path.Child("schema", "openAPIV3Schema"))...)
	errs = append(errs, checkSubresources(version.Subresources, path.Child("subresources"))...)
	for i := range version.AdditionalPrinterColumns {
		column := &version.AdditionalPrinterColumns[i]
		errs = append(errs, checkColumn(column, a.computed(version.Name, column.Name),
			path.Child("additionalPrinterColumns").Index(i))...)
	}
	if len(version.SelectableFields) > 0 {
		if schemaOf(version) == nil {
			errs = append(errs,
				field.Invalid(path.Child("selectableFields"), "",
					"may only be set when `version.schema.openAPIV3Schema` is not included"))
		} else {
			errs = append(errs,
				checkSelectable(version.SelectableFields, schemaOf(version), l.manySelectable[version.Name], path)...)
		}
	}
	return errs
}

func checkDeprecationWarning(deprecated bool, warning *string) (problems []string) {
	if warning == nil {
		return nil
	}
	if !deprecated {
		return []string{"can only be set for deprecated versions"}
	}
	if len(*warning) > 256 {
		problems = append(problems, "must be <= 256 characters long")
	}
	if *warning == "" {
		problems = append(problems, "must not be an empty string")
	}
	for i, r := range *warning {
		if !unicode.IsPrint(r) {
			problems = append(problems,
				fmt.Sprintf("must only contain printable UTF-8 characters; non-printable character found at index %d",
					i))
			break
		}
	}
	if !utf8.ValidString(*warning) {
		problems = append(problems, "must only contain printable UTF-8 characters")
	}
	return problems
}

// validateSchema checks the schema at path, which belongs to the named version.
func (v *Validator) validateSchema(
	props *apiextensionsv1.JSONSchemaProps, status bool, version string, l allowances, path *field.Path,
) field.ErrorList {
	if props == nil {
		return nil
	}
	o := schema.CheckOptions{
		StatusSubresource:    status,
		AllowNonStructural:   l.nonStructural,
		AllowUnknownTypes:    l.unknownTypes,
		AllowUnprunedDefault: l.unprunedDefaults,
		AllowNonAtomicSets:   l.nonAtomicSets,
		AllowLooseMapKeys:    l.looseMapKeys,
		DefaultRules:         v.DefaultRules,
		Patterns:             v.patterns,
		Done:                 v.done,
	}
	if v.CheckRules != nil {
		o.Rules = func(root *schema.Node, path *field.Path, skip func(string) bool) field.ErrorList {
			return v.CheckRules(root, path,
				RuleCheck{
					Rules: l.rules, MessageExpressions: l.messageExpressions, Unchanged: l.unchanged[version],
					Skip: skip, Patterns: v.patterns, Done: v.done,
				})
		}
	}
	return schema.CheckDefinition(props, path, o)
}

// subresourcesOf returns the subresources that the first version of that name has.
func (a *hoisted) subresourcesOf(name string) *apiextensionsv1.CustomResourceSubresources {
	perVersion := false
	for i := range a.versions {
		perVersion = perVersion || a.versions[i].Subresources != nil
	}
	if !perVersion {
		return a.subresources
	}
	for i := range a.versions {
		if a.versions[i].Name == name {
			return a.versions[i].Subresources
		}
	}
	return nil
}

func hasStatus(s *apiextensionsv1.CustomResourceSubresources) bool {
	return s != nil && s.Status != nil
}

func (a *hoisted) anyStatus() bool {
	for i := range a.versions {
		if hasStatus(a.versions[i].Subresources) {
			return true
		}
	}
	return hasStatus(a.subresources)
}

// hasSchema reports whether the predicate holds anywhere in the schemas.
func (a *hoisted) hasSchema(holds func(*apiextensionsv1.JSONSchemaProps) bool) bool {
	for i := range a.versions {
		if schema.HasSchema(schemaOf(&a.versions[i]), holds) {
			return true
		}
	}
	return schema.HasSchema(a.topSchema(), holds)
}

func hasDefault(p *apiextensionsv1.JSONSchemaProps) bool { return p.Default != nil }

func hasExtension(p *apiextensionsv1.JSONSchemaProps) bool {
	return p.XEmbeddedResource || p.XPreserveUnknownFields != nil || p.XIntOrString || len(p.XListMapKeys) > 0 ||
		p.XListType != nil || len(p.XValidations) > 0
}
