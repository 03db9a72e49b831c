package reshape

import (
	"fmt"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// planKey is the key of the compiled rules among the derived values of the storage version.
type planKey struct{}

type planOrError struct {
	plan *Plan
	err  error
}

// Declared returns the conversion of r by rules. The rules are compiled at the first use; text returns them.
func Declared(
	r *catalog.Resource, text func() (string, error),
) func(from, to *catalog.Version, obj catalog.Object) error {
	return func(from, to *catalog.Version, obj catalog.Object) error {
		kept := r.Storage.Derived(planKey{}, func() any {
			plan, err := compiled(r, text)
			return planOrError{plan, err}
		}).(planOrError)
		if kept.err != nil {
			return kept.err
		}
		return kept.plan.Convert(obj, from.Name, to.Name)
	}
}

// compiled compiles the rules of r.
func compiled(r *catalog.Resource, text func() (string, error)) (*Plan, error) {
	rules, err := text()
	if err != nil {
		return nil, err
	}
	c, err := Parse(rules)
	if err != nil {
		return nil, fmt.Errorf("definition %s: %w", r.Definition.Name, err)
	}
	schemas := map[string]*schema.Schema{}
	for _, v := range r.Versions {
		s, err := v.Schema()
		if err != nil {
			return nil, err
		}
		if s != nil {
			schemas[v.Name] = s
		}
	}
	plan, err := New(c, schemas)
	if err != nil {
		return nil, fmt.Errorf("definition %s: %w", r.Definition.Name, err)
	}
	return plan, nil
}

// RulesOf returns the rules in the annotation of a definition, decoded JSON; "" means none.
func RulesOf(obj object.Object) string {
	return object.String(obj, "metadata", "annotations", Annotation)
}

// TakeRules moves rules from spec.conversion of a definition, decoded JSON, to the annotation. Clients with Kubernetes'
// Go types keep annotations, and drop fields that they do not know.
func TakeRules(obj object.Object) {
	conversion := object.Map(obj, "spec", "conversion")
	rules := object.Object{}
	for _, name := range []string{"steps", "examples"} {
		if v, ok := conversion[name]; ok {
			delete(conversion, name)
			if v != nil {
				rules[name] = v
			}
		}
	}
	meta, ok := obj["metadata"].(object.Object)
	if rules["steps"] == nil || !ok {
		return
	}
	if _, ok := meta["annotations"].(object.Object); !ok && meta["annotations"] != nil {
		return // refused elsewhere
	}
	annotations := object.Child(meta, "annotations")
	if old, ok := annotations[Annotation].(string); ok && sameRules(old, rules) {
		return
	}
	annotations[Annotation] = string(codec.AppendJSON(nil, rules))
}

// sameRules reports whether a text has the rules, in YAML or JSON.
func sameRules(text string, rules object.Object) bool {
	raw, err := codec.FromYAML([]byte(text))
	if err != nil {
		return false
	}
	v, err := codec.DecodeJSON(raw)
	return err == nil && codec.Equal(v, any(rules))
}
