package crd

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/request/invalid"
)

// nonStructural sets or removes NonStructuralSchema. Only definitions with spec.preserveUnknownFields, remnants of
// v1beta1, may have a schema that is not structural.
func (c conditions) nonStructural(def *apiextensionsv1.CustomResourceDefinition) {
	if !def.Spec.PreserveUnknownFields {
		c.remove(apiextensionsv1.NonStructuralSchema)
		return
	}
	have := findCondition(*c.list, apiextensionsv1.NonStructuralSchema)
	to := nonStructuralCondition(def)
	if to == nil || have != nil && withoutSchemas(def) {
		return
	}
	c.set(*to)
}

func nonStructuralCondition(
	def *apiextensionsv1.CustomResourceDefinition,
) *apiextensionsv1.CustomResourceDefinitionCondition {
	to := &apiextensionsv1.CustomResourceDefinitionCondition{Type: apiextensionsv1.NonStructuralSchema}
	errs := field.ErrorList{field.Invalid(field.NewPath("spec", "preserveUnknownFields"), true, "must be false")}
	for i := range def.Spec.Versions {
		version := &def.Spec.Versions[i]
		props := schemaOf(version)
		if props == nil {
			continue
		}
		if err := schema.CheckSupported(props); err != nil {
			to.Status, to.Reason = apiextensionsv1.ConditionUnknown, "StructuralError"
			to.Message = fmt.Sprintf("failed to check validation schema for version %s: %v", version.Name, err)
			return to
		}
		errs = append(errs,
			schema.CheckStructural(props,
				field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema"))...)
	}
	to.Status, to.Reason, to.Message = apiextensionsv1.ConditionTrue, "Violations", invalid.Join(errs).Error()
	return to
}

// withoutSchemas reports whether def may be a DecodeWithoutSchemas.
func withoutSchemas(def *apiextensionsv1.CustomResourceDefinition) bool {
	for i := range def.Spec.Versions {
		if schemaOf(&def.Spec.Versions[i]) != nil {
			return false
		}
	}
	return true
}
