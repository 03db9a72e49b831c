package schema

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkRoot checks the rules for the root of a schema.
func checkRoot(p *apiextensionsv1.JSONSchemaProps, at *spot, statusSubresource bool) (errs field.ErrorList) {
	if statusSubresource {
		errs = append(errs, checkStatusRoot(p, at)...)
	}
	if p.Nullable {
		errs = append(errs, field.Forbidden(at.child("nullable"), "nullable cannot be true at the root"))
	}
	return errs
}

// rootKeywords are the allowed fields of the root beside the status subresource, as listed by the message.
var rootKeywords = []string{"Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum",
	"ExclusiveMinimum", "MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf",
	"Required", "Items", "Properties", "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations"}

// checkStatusRoot reports the first field of a root schema that the status subresource does not allow, in the order of
// Kubernetes' internal type. An empty list or map counts as set.
func checkStatusRoot(p *apiextensionsv1.JSONSchemaProps, at *spot) field.ErrorList {
	notAllowed := field.ErrorList{
		field.Invalid(at.path(), KubeValue(*p),
			fmt.Sprintf("only %v fields are allowed at the root of the schema if the status subresource is enabled",
				rootKeywords)),
	}
	switch {
	case p.ID != "", p.Schema != "", p.Ref != nil:
		return notAllowed
	case p.Type != "" && p.Type != "object":
		return field.ErrorList{
			field.Invalid(at.child("type"), p.Type,
				`only "object" is allowed as the type at the root of the schema if the status subresource is enabled`),
		}
	}
	if slices.Contains([]bool{
		p.Nullable, p.Default != nil, p.Enum != nil, p.MaxProperties != nil, p.MinProperties != nil,
		p.AllOf != nil, p.OneOf != nil, p.AnyOf != nil, p.Not != nil,
		p.AdditionalProperties != nil, p.PatternProperties != nil, p.Dependencies != nil, p.AdditionalItems != nil,
		p.Definitions != nil,
		p.XEmbeddedResource, p.XIntOrString, p.XListMapKeys != nil, p.XListType != nil, p.XMapType != nil,
	}, true) {
		return notAllowed
	}
	return nil
}
