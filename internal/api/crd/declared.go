package crd

import (
	"context"
	"errors"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/reshape"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// Declarative is the conversion strategy of a definition with rules and without a webhook. Kubernetes does not have it.
const Declarative = "Declarative"

// rulesPath is the place of the rules in a definition.
var rulesPath = field.NewPath("metadata", "annotations").Key(reshape.Annotation)

// declared returns the conversion of r by the rules of its definition.
func declared(
	r *catalog.Resource, source func() ([]byte, error),
) func(from, to *catalog.Version, obj catalog.Object) error {
	return reshape.Declared(r, func() (string, error) {
		raw, err := source()
		if err != nil {
			return "", err
		}
		def, err := DecodeWithoutSchemas(raw)
		if err != nil {
			return "", err
		}
		return def.Annotations[reshape.Annotation], nil
	})
}

// generatedObjects is the number of objects with which a definition's rules are proven, for all steps together. Each
// step gets five at least.
const generatedObjects = 200

// checkDeclared checks the rules of a definition, decoded JSON, which is valid otherwise.
func checkDeclared(
	ctx context.Context, obj map[string]any, def *apiextensionsv1.CustomResourceDefinition,
) field.ErrorList {
	text := reshape.RulesOf(obj)
	strategy := apiextensionsv1.NoneConverter
	if def.Spec.Conversion != nil {
		strategy = def.Spec.Conversion.Strategy
	}
	switch {
	case text == "" && strategy == Declarative:
		return field.ErrorList{field.Required(rulesPath,
			"strategy Declarative needs the rules in spec.conversion.steps or in the annotation")}
	case text == "":
		return nil
	case strategy == apiextensionsv1.NoneConverter:
		return field.ErrorList{field.Forbidden(rulesPath,
			"must not be set with spec.conversion.strategy None, with which other clusters drop the fields that rules "+
				"move: use strategy Declarative, or Webhook for clusters that do not know the rules")}
	case def.Spec.PreserveUnknownFields:
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "preserveUnknownFields"),
			"must be false with rules for conversion")}
	}
	if err := proveRules(ctx, text, obj, def); err != nil {
		var problems reshape.Problems
		if !errors.As(err, &problems) {
			problems = reshape.Problems{err.Error()}
		}
		var errs field.ErrorList
		for _, problem := range problems {
			errs = append(errs, field.Invalid(rulesPath, field.OmitValueType{}, problem))
		}
		return errs
	}
	return nil
}

// proveRules compiles the rules of a definition, and converts its examples and generated objects.
func proveRules(
	ctx context.Context, text string, obj map[string]any, def *apiextensionsv1.CustomResourceDefinition,
) error {
	plan, c, err := Plan(text, obj, def)
	if err != nil {
		return err
	}
	if err := plan.Examples(c); err != nil {
		return err
	}
	_, err = plan.Prove(ctx, max(5, generatedObjects/len(c.Steps)/2))
	return err
}

// Plan compiles rules for a definition; obj is the definition as decoded JSON.
func Plan(
	text string, obj map[string]any, def *apiextensionsv1.CustomResourceDefinition,
) (*reshape.Plan, *reshape.Config, error) {
	c, err := reshape.Parse(text)
	if err != nil {
		return nil, nil, err
	}
	masked := sensitiveFields(obj)
	schemas := map[string]*schema.Schema{}
	for i := range def.Spec.Versions {
		v := &def.Spec.Versions[i]
		props := schemaOf(v)
		if props == nil {
			continue
		}
		o := schema.Options{}
		if masked != nil {
			o.Sensitive = func(path []string) bool { return masked.At(path...).Whole() }
		}
		if schemas[v.Name], err = schema.Compile(props, o); err != nil {
			return nil, nil, err
		}
	}
	plan, err := reshape.New(c, schemas)
	return plan, c, err
}

// rulesChanged reports whether an update changes the rules of a definition, or its spec.
func rulesChanged(obj, old map[string]any) bool {
	return reshape.RulesOf(obj) != reshape.RulesOf(old) || !codec.Equal(obj["spec"], old["spec"])
}
