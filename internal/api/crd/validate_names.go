package crd

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// checkNames checks the syntax of names; path is that of the names.
func checkNames(n *apiextensionsv1.CustomResourceDefinitionNames, path *field.Path) (errs field.ErrorList) {
	label := func(value string, path *field.Path) {
		if found := utilvalidation.IsDNS1035Label(value); len(found) > 0 {
			errs = append(errs, field.Invalid(path, value, strings.Join(found, ",")))
		}
	}
	kind := func(value string, path *field.Path) {
		if found := utilvalidation.IsDNS1035Label(strings.ToLower(value)); value != "" && len(found) > 0 {
			errs = append(errs,
				field.Invalid(path, value, "may have mixed case, but should otherwise match: "+
					strings.Join(found, ",")))
		}
	}
	if n.Plural != "" {
		label(n.Plural, path.Child("plural"))
	}
	if n.Singular != "" {
		label(n.Singular, path.Child("singular"))
	}
	kind(n.Kind, path.Child("kind"))
	kind(n.ListKind, path.Child("listKind"))
	for i, name := range n.ShortNames {
		label(name, path.Child("shortNames").Index(i))
	}
	if n.Kind != "" && n.Kind == n.ListKind {
		errs = append(errs, field.Invalid(path.Child("listKind"), n.ListKind, "kind and listKind may not be the same"))
	}
	for i, name := range n.Categories {
		label(name, path.Child("categories").Index(i))
	}
	return errs
}

const (
	columnTypes   = "boolean,date,integer,number,string"
	columnFormats = "byte,date,date-time,double,float,int32,int64,password"
)

func checkColumn(
	c *apiextensionsv1.CustomResourceColumnDefinition, computed bool, path *field.Path,
) (errs field.ErrorList) {
	if c.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	if c.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), "must be one of "+columnTypes))
	} else if !slices.Contains(strings.Split(columnTypes, ","), c.Type) {
		errs = append(errs, field.Invalid(path.Child("type"), c.Type, "must be one of "+columnTypes))
	}
	if c.Format != "" && !slices.Contains(strings.Split(columnFormats, ","), c.Format) {
		errs = append(errs, field.Invalid(path.Child("format"), c.Format, "must be one of "+columnFormats))
	}
	switch {
	case c.JSONPath == "" && computed:
		return errs
	case c.JSONPath == "":
		return append(errs, field.Required(path.Child("JSONPath"), ""))
	}
	return append(errs, checkSimplePath(c.JSONPath, path.Child("JSONPath"))...)
}

// checkSimplePath checks a non-empty JSON path in dot notation. Kubernetes checks nothing else here.
func checkSimplePath(s string, path *field.Path) field.ErrorList {
	if s[0] != '.' {
		return field.ErrorList{field.Invalid(path, s, "must be a simple json path starting with .")}
	}
	return nil
}

func checkSubresources(s *apiextensionsv1.CustomResourceSubresources, path *field.Path) (errs field.ErrorList) {
	if s == nil || s.Scale == nil {
		return nil
	}
	check := func(name, value, where string, roots ...string) {
		at := path.Child("scale." + name)
		if value == "" {
			errs = append(errs, field.Required(at, ""))
			return
		}
		if found := checkSimplePath(value, at); len(found) > 0 {
			errs = append(errs, found...)
			return
		}
		if !slices.ContainsFunc(roots, func(root string) bool { return strings.HasPrefix(value, root) }) {
			errs = append(errs, field.Invalid(at, value, "should be a json path under "+where))
		}
	}
	check("specReplicasPath", s.Scale.SpecReplicasPath, ".spec", ".spec.")
	check("statusReplicasPath", s.Scale.StatusReplicasPath, ".status", ".status.")
	if p := s.Scale.LabelSelectorPath; p != nil && *p != "" {
		check("labelSelectorPath", *p, "either .spec or .status", ".spec.", ".status.")
	}
	return errs
}

// maxSelectableFields is how many fields of a version selectors may use.
const maxSelectableFields = 8

// checkSelectable checks selectable fields against their schema; path is that of the parent of both.
func checkSelectable(
	fields []apiextensionsv1.SelectableField, props *apiextensionsv1.JSONSchemaProps, allowMany bool, path *field.Path,
) (errs field.ErrorList) {
	if err := schema.CheckSupported(props); err != nil {
		errs = append(errs, field.Invalid(path.Child("schema.openAPIV3Schema"), "", err.Error()))
		props = nil
	}
	path = path.Child("selectableFields")
	seen := map[string]bool{}
	for i, f := range fields {
		at := path.Index(i).Child("jsonPath")
		if f.JSONPath == "" {
			errs = append(errs, field.Required(at, ""))
			continue
		}
		found, leaf, err := schema.FieldPath(props, f.JSONPath, false)
		if err != nil {
			errs = append(errs, field.Invalid(at, f.JSONPath, "is an invalid path: "+err.Error()))
			continue
		}
		if found.Root().String() == "metadata" {
			errs = append(errs, field.Invalid(at, f.JSONPath, "must not point to fields in metadata"))
		}
		if leaf == nil || leaf.Type != "string" && leaf.Type != "boolean" && leaf.Type != "integer" {
			errs = append(errs,
				field.Invalid(at, f.JSONPath,
					"must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."))
		}
		if seen[found.String()] {
			errs = append(errs, field.Duplicate(at, f.JSONPath))
		}
		seen[found.String()] = true
	}
	if len(seen) > maxSelectableFields && !allowMany {
		errs = append(errs, field.TooMany(path, len(seen), maxSelectableFields))
	}
	return errs
}
