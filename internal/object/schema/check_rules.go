package schema

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// reasons are the values of a rule's reason, as messages list them.
var reasons = []apiextensionsv1.FieldValueErrorReason{
	apiextensionsv1.FieldValueDuplicate, apiextensionsv1.FieldValueForbidden, apiextensionsv1.FieldValueInvalid,
	apiextensionsv1.FieldValueRequired,
}

// rules checks the parts of x-kubernetes-validations that need no CEL.
func (k *keywords) rules(p *apiextensionsv1.JSONSchemaProps, at *spot) {
	for i := range p.XValidations {
		rule := &p.XValidations[i]
		path := at.child("x-kubernetes-validations").Index(i)
		source, message := strings.TrimSpace(rule.Rule), strings.TrimSpace(rule.Message)
		switch {
		case source == "":
			k.add(field.Required(path.Child("rule"), "rule is not specified"))
		case rule.Message != "" && message == "":
			k.add(field.Invalid(path.Child("message"), rule.Message, "must be non-empty if specified"))
		case hasLineBreak(message):
			k.add(field.Invalid(path.Child("message"), rule.Message, "must not contain line breaks"))
		case hasLineBreak(source) && message == "":
			k.add(field.Required(path.Child("message"), "message must be specified if rule contains line breaks"))
		}
		if rule.MessageExpression != "" && strings.TrimSpace(rule.MessageExpression) == "" {
			k.add(field.Required(path.Child("messageExpression"), "messageExpression must be non-empty if specified"))
		}
		if rule.Reason != nil && !slices.Contains(reasons, *rule.Reason) {
			k.add(field.NotSupported(path.Child("reason"), *rule.Reason, reasons))
		}
		if rule.FieldPath == "" {
			continue
		}
		if strings.TrimSpace(rule.FieldPath) == "" {
			k.add(field.Invalid(path.Child("fieldPath"), rule.FieldPath, "must be non-empty if specified"))
		}
		if hasLineBreak(rule.FieldPath) {
			k.add(field.Invalid(path.Child("fieldPath"), rule.FieldPath, "must not contain line breaks"))
		}
		if CheckSupported(p) == nil {
			if _, _, err := FieldPath(p, rule.FieldPath, true); err != nil {
				k.add(field.Invalid(path.Child("fieldPath"), rule.FieldPath, "must be a valid path"))
			}
		}
	}
}

func hasLineBreak(s string) bool { return strings.ContainsAny(s, "\n\r") }
