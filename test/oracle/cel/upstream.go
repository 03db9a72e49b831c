package cel

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	upstreamcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/warning"
)

// upstream is a schema in the hands of the Kubernetes libraries.
type upstream struct {
	internal   *apiextensions.JSONSchemaProps
	structural *structuralschema.Structural
	validator  *upstreamcel.Validator // nil without rules
}

func newUpstream(props *apiextensionsv1.JSONSchemaProps) (*upstream, error) {
	u := &upstream{internal: &apiextensions.JSONSchemaProps{}}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props.DeepCopy(), u.internal,
		nil); err != nil {
		return nil, err
	}
	var err error
	u.structural, err = structuralschema.NewStructural(u.internal)
	return u, err
}

// request processes a new object like apiextensions-apiserver's request handler and strategy, except for metadata: it
// prunes, sets defaults, validates, and evaluates the rules.
func (u *upstream) request(values apiservervalidation.SchemaValidator, obj, old map[string]any) (errs field.ErrorList) {
	pruning.PruneWithOptions(obj, u.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, u.structural)
	if err, _ := objectmeta.CoerceWithOptions(nil, obj, u.structural, false,
		objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true}); err != nil {
		return field.ErrorList{err}
	}
	defaulting.Default(obj, u.structural)
	if old == nil {
		errs = apiservervalidation.ValidateCustomResource(nil, obj, values)
	} else {
		correlated := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: u.structural})
		errs = apiservervalidation.ValidateCustomResourceUpdate(nil, obj, old, values,
			apiservervalidation.WithRatcheting(correlated))
	}
	errs = append(errs, objectmeta.Validate(context.Background(), nil, obj, u.structural, false)...)
	if old == nil || len(listtype.ValidateListSetsAndMaps(nil, u.structural, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, u.structural, obj)...)
	}
	failed, _, _ := u.evaluate(obj, old, true, celconfig.RuntimeCELCostBudget)
	return append(errs, failed...)
}

// compile makes the programs.
func (u *upstream) compile() *upstream {
	u.validator = upstreamcel.NewValidator(u.structural, true, celconfig.PerCallLimit)
	return u
}

// check returns all errors of the schema as one version of a definition. path is the path of the schema.
func (u *upstream) check() (errs field.ErrorList, path *field.Path) {
	spec := apiextensions.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensions.ClusterScoped,
		Names: apiextensions.CustomResourceDefinitionNames{
			Plural: "tests", Singular: "test", Kind: "Test", ListKind: "TestList",
		},
		Version: "v1",
		Versions: []apiextensions.CustomResourceDefinitionVersion{
			{Name: "v1", Served: true, Storage: true},
		},
		Validation:            &apiextensions.CustomResourceValidation{OpenAPIV3Schema: u.internal.DeepCopy()},
		Conversion:            &apiextensions.CustomResourceConversion{Strategy: apiextensions.NoneConverter},
		PreserveUnknownFields: new(bool),
	}
	errs = validation.ValidateCustomResourceDefinition(context.Background(), &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "tests.example.com"},
		Spec:       spec,
		Status:     apiextensions.CustomResourceDefinitionStatus{StoredVersions: []string{"v1"}},
	})
	return errs, field.NewPath("spec", "validation", "openAPIV3Schema")
}

// warnings collects the errors that ratcheting allows.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

// evaluate runs the rules as customResourceStrategy does. left is the rest of the budget.
func (u *upstream) evaluate(obj, old map[string]any, ratchet bool, budget int64) (errs field.ErrorList, w []string,
	left int64) {
	if u.validator == nil {
		return nil, nil, budget
	}
	var collected warnings
	ctx := warning.WithWarningRecorder(context.Background(), &collected)
	if old == nil {
		errs, left = u.validator.Validate(ctx, nil, u.structural, obj, nil, budget)
		return errs, collected, left
	}
	var options []upstreamcel.Option
	if ratchet {
		options = append(options,
			upstreamcel.WithRatcheting(common.NewCorrelatedObject(obj, old,
				&model.Structural{Structural: u.structural})))
	}
	errs, left = u.validator.Validate(ctx, nil, u.structural, obj, old, budget, options...)
	return errs, collected, left
}

// typeNames are made up by both sides.
var typeNames = regexp.MustCompile(`selfType\d+`)

// describe returns errors as a sorted list of comparable texts.
func describe(errs field.ErrorList) []string {
	out := make([]string, len(errs))
	for i, err := range errs {
		out[i] = typeNames.ReplaceAllString(fmt.Sprintf("%s | %s | %s", err.Type, err.Field,
			strings.TrimSpace(err.Error())), "selfType")
	}
	slices.Sort(out)
	return out
}
