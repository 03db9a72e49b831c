package crd

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd/own"
	"github.com/bowsprit/bowsprit/internal/api/reshape"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel"
)

// Declarative is the conversion strategy of a definition with rules and without a webhook. Kubernetes does not have it.
const Declarative = "Declarative"

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

// checkDeclared checks the rules of a definition, decoded JSON, which is valid otherwise.
func checkDeclared(
	ctx context.Context, obj map[string]any, def *apiextensionsv1.CustomResourceDefinition,
) field.ErrorList {
	strategy := apiextensionsv1.NoneConverter
	if def.Spec.Conversion != nil {
		strategy = def.Spec.Conversion.Strategy
	}
	return reshape.Check(ctx, obj, reshape.Manner{
		Declarative: strategy == Declarative, None: strategy == apiextensionsv1.NoneConverter,
		Preserves: def.Spec.PreserveUnknownFields,
	}, func(text string) (*reshape.Plan, *reshape.Config, error) { return Plan(text, obj, def) })
}

// proof returns the check of the stored objects of a definition with rules, nil if an update does not affect it. old is
// nil for a new definition: objects of a former one may be stored.
func proof(obj, old catalog.Object) (*catalog.Proof, error) {
	if !reshape.Affects(obj, old) {
		return nil, nil
	}
	def, err := Decode(obj)
	if err != nil {
		return nil, err
	}
	c, err := reshape.Parse(reshape.RulesOf(obj))
	if err != nil {
		return nil, err
	}
	compiled, err := schemas(obj, def, cel.Compile)
	if err != nil {
		return nil, err
	}
	plan, err := reshape.New(c, compiled)
	if err != nil {
		return nil, err
	}
	p := plan.Proof(obj, catalog.GroupResource{Group: def.Spec.Group, Resource: def.Spec.Names.Plural})
	if report := p.Report; old == nil {
		p.Report = func(read, all int) string {
			if all == 0 {
				return ""
			}
			return report(read, all)
		}
	}
	return p, nil
}

// Plan compiles rules for a definition; obj is the definition as decoded JSON.
func Plan(
	text string, obj map[string]any, def *apiextensionsv1.CustomResourceDefinition,
) (*reshape.Plan, *reshape.Config, error) {
	c, err := reshape.Parse(text)
	if err != nil {
		return nil, nil, err
	}
	schemas, err := Schemas(obj, def)
	if err != nil {
		return nil, nil, err
	}
	plan, err := reshape.New(c, schemas)
	return plan, c, err
}

// checkOwn checks the fields that Kubernetes lacks, of a definition that is valid otherwise. old is nil for a new
// definition.
func checkOwn(
	ctx context.Context, obj, old map[string]any, def *apiextensionsv1.CustomResourceDefinition,
) field.ErrorList {
	if old != nil && !annotationsChanged(obj, old) && codec.Equal(obj["spec"], old["spec"]) {
		return nil
	}
	if errs := append(own.CheckColumnFields(obj), own.CheckImmutable(obj)...); len(errs) > 0 {
		return errs
	}
	if errs := own.CheckColumns(obj, old, def, sensitiveFields(obj)); len(errs) > 0 {
		return errs
	}
	return checkDeclared(ctx, obj, def)
}

// annotationsChanged reports whether an update changes an annotation that stands for fields of the spec.
func annotationsChanged(obj, old map[string]any) bool {
	return reshape.RulesOf(obj) != reshape.RulesOf(old) || own.ColumnsOf(obj) != own.ColumnsOf(old)
}
