package admission

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/admit/registration"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func validatingPolicyKind() rule.Kind {
	k := admissionKind("ValidatingAdmissionPolicy", "validatingadmissionpolicies", validatingPolicyRules(),
		rule.Printed(validatingPolicyCells))
	k.Status, k.StatusOnly = true, true
	return rule.Of[admissionregistrationv1.ValidatingAdmissionPolicy](k)
}

func validatingPolicyRules() *catalog.Strategy {
	r := admissionRules(registration.DefaultPolicy, registration.CheckValidatingPolicy)
	r.ValidateUpdate = rule.TypedUpdate(func(p, old *admissionregistrationv1.ValidatingAdmissionPolicy,
		subresource string) field.ErrorList {
		if subresource == "status" {
			return registration.CheckValidatingPolicyStatus(p)
		}
		return registration.CheckValidatingPolicy(p, old)
	})
	return r
}

func validatingPolicyCells(p *admissionregistrationv1.ValidatingAdmissionPolicy, e catalog.Env) []any {
	return []any{p.Name, int64(len(p.Spec.Validations)), paramKind(p.Spec.ParamKind), rule.Ago(p.CreationTimestamp, e)}
}
