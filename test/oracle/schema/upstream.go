package schema

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"
)

// upstream runs the Kubernetes libraries in the order of apiextensions-apiserver's request handler and strategies
// (pkg/apiserver/customresource_handler.go, pkg/registry/customresource).
type upstream struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	status     validation.SchemaValidator // nil without a status in the schema
	preserve   bool
}

func newUpstream(props *apiextensionsv1.JSONSchemaProps, preserve bool) (*upstream, error) {
	in := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props.DeepCopy()}
	internal := &apiextensions.CustomResourceValidation{}
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(in,
		internal, nil); err != nil {
		return nil, err
	}
	u := &upstream{preserve: preserve}
	s, err := structuralschema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	u.structural = s.DeepCopy()
	if !preserve {
		if err := defaulting.PruneDefaults(u.structural); err != nil {
			return nil, err
		}
	}
	if u.validator, _, err = validation.NewSchemaValidator(internal.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	if status, ok := internal.OpenAPIV3Schema.Properties["status"]; ok {
		u.status, _, err = validation.NewSchemaValidator(&status)
	}
	return u, err
}

// shape prepares an object for validation: unstructuredSchemaCoercer.apply below the root, then defaulting. salvage
// drops malformed metadata, as for objects from storage; fill adds defaults.
func (u *upstream) shape(obj map[string]any, salvage, fill bool) (unknown []string, err error) {
	if !u.preserve {
		unknown = pruning.PruneWithOptions(obj, u.structural, true,
			structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
		defaulting.PruneNonNullableNullsWithoutDefaults(obj, u.structural)
	}
	fieldErr, more := objectmeta.CoerceWithOptions(nil, obj, u.structural, false,
		objectmeta.CoerceOptions{DropInvalidFields: salvage, ReturnUnknownFieldPaths: true})
	if fieldErr != nil {
		return nil, fieldErr
	}
	if fill {
		defaulting.Default(obj, u.structural)
	}
	return append(unknown, more...), nil
}

// validate is customResourceStrategy's Validate or ValidateUpdate without metadata, scale and rules.
func (u *upstream) validate(obj, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	if old == nil {
		errs = append(errs, validation.ValidateCustomResource(nil, obj, u.validator)...)
	} else {
		correlated := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: u.structural})
		errs = append(errs,
			validation.ValidateCustomResourceUpdate(nil, obj, old, u.validator,
				validation.WithRatcheting(correlated))...)
	}
	errs = append(errs, objectmeta.Validate(context.Background(), nil, obj, u.structural, false)...)
	if old == nil || len(listtype.ValidateListSetsAndMaps(nil, u.structural, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, u.structural, obj)...)
	}
	return errs
}

// validateStatus is statusStrategy's ValidateUpdate without metadata, scale and rules.
func (u *upstream) validateStatus(obj, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	correlated := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: u.structural})
	if status, ok := obj["status"]; ok && u.status != nil {
		errs = append(errs,
			validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old["status"], u.status,
				validation.WithRatcheting(correlated.Key("status")))...)
	}
	if lists := listtype.ValidateListSetsAndMaps(nil, u.structural, obj); len(lists) > 0 {
		if len(listtype.ValidateListSetsAndMaps(nil, u.structural, old)) == 0 {
			errs = append(errs, lists...)
		}
	}
	return errs
}
