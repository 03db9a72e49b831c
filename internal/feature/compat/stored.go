package compat

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel"
)

// The classes of findings about stored objects.
const (
	// InvalidObjects are valid now, and are not after the change.
	InvalidObjects Class = "invalidObjects"
	// PrunedObjects have fields that the change removes.
	PrunedObjects Class = "prunedObjects"
)

// shown bounds the objects that a finding names.
const shown = 3

// Objects checks the stored objects of a version against the version before and after a change. It is not safe for
// concurrent use.
type Objects struct {
	version         string
	was, is         *schema.Schema
	checked         int
	invalid, pruned affected
}

// affected counts objects, and describes the first ones.
type affected struct {
	count    int
	examples []string
}

func (a *affected) add(namespace, name, problem string) {
	if a.count++; a.count > shown {
		return
	}
	if namespace != "" {
		name = namespace + "/" + name
	}
	a.examples = append(a.examples, name+": "+problem)
}

// NewObjects returns a check of the objects of a version that both states have.
func NewObjects(was, is *apiextensionsv1.CustomResourceDefinition, version string) (*Objects, error) {
	o := &Objects{version: version}
	for _, s := range []struct {
		def *apiextensionsv1.CustomResourceDefinition
		to  **schema.Schema
	}{{was, &o.was}, {is, &o.is}} {
		i := versionIndex(s.def, version)
		if i < 0 {
			return nil, fmt.Errorf("the definition has no version %s", version)
		}
		compiled, err := schema.Compile(schemaOf(&s.def.Spec.Versions[i]), schema.Options{
			PreserveUnknownFields: s.def.Spec.PreserveUnknownFields, Rules: cel.Compile,
		})
		if err != nil {
			return nil, fmt.Errorf("version %s: %w", version, err)
		}
		*s.to = compiled
	}
	return o, nil
}

// Check checks an object of the version, decoded JSON with int64 for whole numbers. It changes the object. An object
// that is invalid before the change, too, is no finding.
func (o *Objects) Check(namespace, name string, obj map[string]any) {
	o.checked++
	before := o.was.Validate(obj, nil)
	unknown, err := o.is.NormalizeRequest(obj)
	if len(unknown) > 0 {
		o.pruned.add(namespace, name, "loses "+strings.Join(unknown, ", "))
	}
	if len(before) > 0 {
		return
	}
	if err != nil {
		o.invalid.add(namespace, name, err.Error())
	} else if after := o.is.Validate(obj, nil); len(after) > 0 {
		o.invalid.add(namespace, name, after[0].Error())
	}
}

// Checked returns the number of checked objects.
func (o *Objects) Checked() int { return o.checked }

// Findings returns the findings about the checked objects.
func (o *Objects) Findings() (found []Finding) {
	for _, f := range []struct {
		class Class
		affected
		text string
	}{
		{InvalidObjects, o.invalid, "become invalid"}, {PrunedObjects, o.pruned, "lose fields"},
	} {
		if f.count > 0 {
			found = append(found, Finding{Class: f.class, Version: o.version, Text: fmt.Sprintf(
				"%d of %d stored objects %s: %s", f.count, o.checked, f.text, strings.Join(f.examples, "; "))})
		}
	}
	return found
}
