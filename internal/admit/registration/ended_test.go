package registration

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestChecksEnd has requests end after some of their expressions: the others, which are wrong too, are not compiled.
func TestChecksEnd(t *testing.T) {
	t.Parallel()
	const expressions, wrong = 20, "no such variable"
	conditions := make([]admissionregistrationv1.MatchCondition, expressions)
	validations := make([]admissionregistrationv1.Validation, expressions)
	variables := make([]admissionregistrationv1.Variable, expressions)
	annotations := make([]admissionregistrationv1.AuditAnnotation, expressions)
	mutations := make([]admissionregistrationv1.Mutation, expressions)
	for i := range expressions {
		name := fmt.Sprint("a", i)
		conditions[i] = admissionregistrationv1.MatchCondition{Name: name, Expression: wrong}
		validations[i] = admissionregistrationv1.Validation{Expression: wrong}
		variables[i] = admissionregistrationv1.Variable{Name: name, Expression: wrong}
		annotations[i] = admissionregistrationv1.AuditAnnotation{Key: name, ValueExpression: wrong}
		mutations[i] = admissionregistrationv1.Mutation{
			PatchType: admissionregistrationv1.PatchTypeJSONPatch,
			JSONPatch: &admissionregistrationv1.JSONPatch{Expression: wrong},
		}
	}
	validating := func(spec admissionregistrationv1.ValidatingAdmissionPolicySpec) func(func() bool) field.ErrorList {
		return func(ended func() bool) field.ErrorList {
			return CheckValidatingPolicy(&admissionregistrationv1.ValidatingAdmissionPolicy{Spec: spec}, nil, ended)
		}
	}
	mutating := func(spec admissionregistrationv1.MutatingAdmissionPolicySpec) func(func() bool) field.ErrorList {
		return func(ended func() bool) field.ErrorList {
			return CheckMutatingPolicy(&admissionregistrationv1.MutatingAdmissionPolicy{Spec: spec}, nil, ended)
		}
	}
	for name, check := range map[string]func(func() bool) field.ErrorList{
		"conditions":  validating(admissionregistrationv1.ValidatingAdmissionPolicySpec{MatchConditions: conditions}),
		"validations": validating(admissionregistrationv1.ValidatingAdmissionPolicySpec{Validations: validations}),
		"variables":   validating(admissionregistrationv1.ValidatingAdmissionPolicySpec{Variables: variables}),
		"annotations": validating(admissionregistrationv1.ValidatingAdmissionPolicySpec{AuditAnnotations: annotations}),
		"mutations":   mutating(admissionregistrationv1.MutatingAdmissionPolicySpec{Mutations: mutations}),
		"conditions of a mutating policy": mutating(
			admissionregistrationv1.MutatingAdmissionPolicySpec{MatchConditions: conditions}),
		"a validating webhook": func(ended func() bool) field.ErrorList {
			return CheckValidatingWebhooks(&admissionregistrationv1.ValidatingWebhookConfiguration{
				Webhooks: []admissionregistrationv1.ValidatingWebhook{{MatchConditions: conditions}},
			}, nil, ended)
		},
		"a mutating webhook": func(ended func() bool) field.ErrorList {
			return CheckMutatingWebhooks(&admissionregistrationv1.MutatingWebhookConfiguration{
				Webhooks: []admissionregistrationv1.MutatingWebhook{{MatchConditions: conditions}},
			}, nil, ended)
		},
	} {
		for _, looks := range []int{0, 7, expressions} {
			left, compiled := looks, 0
			for _, err := range check(func() bool { left--; return left < 0 }) {
				if strings.Contains(err.Detail, "compilation failed") {
					compiled++
				}
			}
			if compiled != looks {
				t.Errorf("%s: %d of %d expressions were compiled, want %d", name, compiled, expressions, looks)
			}
		}
	}
}
