package admission

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"

	"github.com/bowsprit/bowsprit/internal/admit/registration"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func validatingPolicyKind() rule.Kind {
	k := admissionKind("ValidatingAdmissionPolicy", "validatingadmissionpolicies", validatingPolicyRules(),
		rule.Printed(validatingPolicyCells))
	k.Status, k.StatusOnly = true, true
	k.Also = rule.OnDemand[admissionregistrationv1beta1.ValidatingAdmissionPolicy](admissionregistrationV1beta1)
	return rule.Of[admissionregistrationv1.ValidatingAdmissionPolicy](k)
}

func validatingPolicyRules() *catalog.Strategy {
	return admissionStrategy(registration.DefaultPolicy)
}

func validatingPolicyCells(p *admissionregistrationv1.ValidatingAdmissionPolicy, e catalog.Env) []any {
	return []any{p.Name, int64(len(p.Spec.Validations)), paramKind(p.Spec.ParamKind), rule.Ago(p.CreationTimestamp, e)}
}

// validatingAdmissionPolicyFunctions are the functions that validating_admission_policy.txt names.
func validatingAdmissionPolicyFunctions() rule.Functions {
	return rule.Functions{
		"validatingPolicy":       checked(registration.CheckValidatingPolicy),
		"validatingPolicyStatus": rule.Typed(registration.CheckValidatingPolicyStatus, nil),
	}
}
