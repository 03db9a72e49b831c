package compat

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/version"
)

// Compare returns the changes between two states of a definition: first of the definition, then of each version, then
// the differences between served versions that the new state adds.
func Compare(was, is *apiextensionsv1.CustomResourceDefinition) []Finding {
	c := &comparison{}
	c.definition(was, is)
	for i := range was.Spec.Versions {
		v := &was.Spec.Versions[i]
		if j := versionIndex(is, v.Name); j >= 0 {
			c.version(v, &is.Spec.Versions[j], j)
		}
	}
	return append(c.found, betweenVersions(was, is)...)
}

// Removed returns the finding for a definition that is gone.
func Removed(was *apiextensionsv1.CustomResourceDefinition) []Finding {
	text := fmt.Sprintf("the definition of %s is removed, with all its objects", was.Spec.Names.Kind)
	return []Finding{{Class: DefinitionRemoval, Text: text}}
}

// comparison collects findings.
type comparison struct {
	found []Finding
	// in is the version of the fields that are compared, and root the location of its schema.
	in, root string
}

// add adds a finding at a path of objects and a location in the definition.
func (c *comparison) add(class Class, path, location, text string, args ...any) {
	c.found = append(c.found, Finding{
		Class: class, Version: c.in, Path: path, Text: fmt.Sprintf(text, args...), Location: location,
	})
}

func versionIndex(def *apiextensionsv1.CustomResourceDefinition, name string) int {
	return slices.IndexFunc(def.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == name
	})
}

// definition compares everything outside of the versions.
func (c *comparison) definition(was, is *apiextensionsv1.CustomResourceDefinition) {
	if was.Spec.Scope != is.Spec.Scope {
		c.add(Scope, "", "spec.scope", "the scope changes from %s to %s", was.Spec.Scope, is.Spec.Scope)
	}
	for _, name := range [][3]string{
		{was.Spec.Group, is.Spec.Group, "group"},
		{was.Spec.Names.Kind, is.Spec.Names.Kind, "names.kind"},
		{was.Spec.Names.Plural, is.Spec.Names.Plural, "names.plural"},
	} {
		if name[0] != name[1] {
			c.add(Names, "", "spec."+name[2], "%s changes from %q to %q", name[2], name[0], name[1])
		}
	}
	stored := was.Status.StoredVersions
	for i := range was.Spec.Versions {
		v := &was.Spec.Versions[i]
		if v.Storage && len(was.Status.StoredVersions) == 0 { // a file has no status
			stored = []string{v.Name}
		}
		j := versionIndex(is, v.Name)
		if v.Served && (j < 0 || !is.Spec.Versions[j].Served) {
			c.add(ServedVersionRemoval, "", "spec.versions", "the version %s is no longer served", v.Name)
		}
	}
	for _, name := range stored {
		if versionIndex(is, name) < 0 {
			c.add(StoredVersionRemoval, "", "spec.versions", "the version %s is removed, and objects may be stored in it", name)
		}
	}
}

// version compares a version with its new state, which is number j.
func (c *comparison) version(was, is *apiextensionsv1.CustomResourceDefinitionVersion, j int) {
	c.in = was.Name
	at := fmt.Sprintf("spec.versions[%d]", j)
	c.root = at + ".schema.openAPIV3Schema"
	c.subresources(was.Subresources, is.Subresources, at+".subresources")
	for _, f := range was.SelectableFields {
		if !slices.Contains(is.SelectableFields, f) {
			c.add(SelectableFields, strings.TrimPrefix(f.JSONPath, "."), at+".selectableFields",
				"the field selector is removed")
		}
	}
	c.field(schemaOf(was), schemaOf(is), "", c.root)
}

// schemaOf returns the schema of a version, which may be empty.
func schemaOf(v *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return &apiextensionsv1.JSONSchemaProps{}
	}
	return v.Schema.OpenAPIV3Schema
}

func (c *comparison) subresources(was, is *apiextensionsv1.CustomResourceSubresources, at string) {
	if was == nil {
		was = &apiextensionsv1.CustomResourceSubresources{}
	}
	if is == nil {
		is = &apiextensionsv1.CustomResourceSubresources{}
	}
	switch {
	case was.Status != nil && is.Status == nil:
		c.add(Subresources, "", at, "the subresource status is removed: controllers cannot write it any more")
	case was.Status == nil && is.Status != nil:
		c.add(Subresources, "", at, "the subresource status is added: writes of the object no longer change its status")
	}
	switch {
	case was.Scale != nil && is.Scale == nil:
		c.add(Subresources, "", at, "the subresource scale is removed")
	case was.Scale != nil && !sameScale(was.Scale, is.Scale):
		c.add(Subresources, "", at, "the paths of the subresource scale change")
	}
}

func sameScale(was, is *apiextensionsv1.CustomResourceSubresourceScale) bool {
	selector := func(s *apiextensionsv1.CustomResourceSubresourceScale) string {
		if s.LabelSelectorPath == nil {
			return ""
		}
		return *s.LabelSelectorPath
	}
	return was.SpecReplicasPath == is.SpecReplicasPath && was.StatusReplicasPath == is.StatusReplicasPath &&
		selector(was) == selector(is)
}

// betweenVersions returns the differences between served versions of a definition without conversion that the former
// state does not have: an object that a client writes in one version loses or breaks them in the other one.
func betweenVersions(was, is *apiextensionsv1.CustomResourceDefinition) (found []Finding) {
	if is.Spec.Conversion != nil && is.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter {
		return nil
	}
	before := map[Finding]bool{}
	for _, f := range pairs(was) {
		f.Location = ""
		before[f] = true
	}
	for _, f := range pairs(is) {
		key := f
		if key.Location = ""; !before[key] {
			found = append(found, f)
		}
	}
	return found
}

// pairs compares each two served versions of a definition, the less mature one with the other one.
func pairs(def *apiextensionsv1.CustomResourceDefinition) []Finding {
	var served []int
	for i := range def.Spec.Versions {
		if def.Spec.Versions[i].Served {
			served = append(served, i)
		}
	}
	slices.SortFunc(served, func(a, b int) int {
		return version.CompareKubeAwareVersionStrings(def.Spec.Versions[a].Name, def.Spec.Versions[b].Name)
	})
	c := &comparison{}
	for n, i := range served {
		for _, j := range served[n+1:] {
			was, is := &def.Spec.Versions[i], &def.Spec.Versions[j]
			c.in = was.Name + " -> " + is.Name
			c.root = fmt.Sprintf("spec.versions[%d].schema.openAPIV3Schema", j)
			c.field(schemaOf(was), schemaOf(is), "", c.root)
		}
	}
	return c.found
}
