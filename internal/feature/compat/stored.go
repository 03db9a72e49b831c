package compat

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

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

// Objects checks the stored objects against one version before and after a change. It is not safe for concurrent use.
type Objects struct {
	version         string
	states          [2]*apiextensionsv1.CustomResourceDefinition // before and after
	was, is         *schema.Schema                               // nil before the first object
	hide            bool                                         // values
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

// NewObjects returns a check of the objects for each served version whose schema changes in a way that can affect them.
func NewObjects(was, is *apiextensionsv1.CustomResourceDefinition) (all []*Objects) {
	for i := range was.Spec.Versions {
		v := &was.Spec.Versions[i]
		j := versionIndex(is, v.Name)
		if v.Served && j >= 0 && is.Spec.Versions[j].Served && affects(was, is, i, j) {
			all = append(all, &Objects{version: v.Name, states: [2]*apiextensionsv1.CustomResourceDefinition{was, is}})
		}
	}
	return all
}

// compile compiles the schemas.
func (o *Objects) compile() error {
	for i, to := range []**schema.Schema{&o.was, &o.is} {
		def := o.states[i]
		compiled, err := schema.Compile(schemaOf(&def.Spec.Versions[versionIndex(def, o.version)]), schema.Options{
			PreserveUnknownFields: def.Spec.PreserveUnknownFields, Rules: cel.Compile,
		})
		if err != nil {
			return fmt.Errorf("version %s: %w", o.version, err)
		}
		*to = compiled
	}
	return nil
}

// HideValues makes the findings name objects and fields without their values.
func (o *Objects) HideValues() { o.hide = true }

// Version returns the version in which Check receives the objects.
func (o *Objects) Version() string { return o.version }

// Check checks an object of the version, decoded JSON with int64 for whole numbers. It changes the object. An object
// that is invalid before the change, too, is no finding. The error is about the schemas.
func (o *Objects) Check(namespace, name string, obj map[string]any) error {
	return o.check(namespace, name, obj, false)
}

// check is Check. converts is true if the object had another form before the change, in which it was valid.
func (o *Objects) check(namespace, name string, obj map[string]any, converts bool) error {
	if o.is == nil {
		if err := o.compile(); err != nil {
			return err
		}
	}
	o.checked++
	var before field.ErrorList
	if !converts {
		before = o.was.Validate(obj, nil)
	}
	unknown, err := o.is.NormalizeRequest(obj)
	if len(unknown) > 0 {
		o.pruned.add(namespace, name, "loses "+strings.Join(unknown, ", "))
	}
	if len(before) > 0 {
		return nil
	}
	if err != nil {
		o.invalid.add(namespace, name, o.describe(nil, err))
	} else if after := o.is.Validate(obj, nil); len(after) > 0 {
		o.invalid.add(namespace, name, o.describe(after[0], after[0]))
	}
	return nil
}

// describe returns the text of an error; e is the error if it has a field.
func (o *Objects) describe(e *field.Error, err error) string {
	switch {
	case !o.hide:
		return err.Error()
	case e == nil:
		return "an embedded object has invalid metadata"
	}
	return e.Field + ": " + e.Type.String()
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
