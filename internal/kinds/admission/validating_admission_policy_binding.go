package admission

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"

	"github.com/bowsprit/bowsprit/internal/admit/registration"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func validatingBindingKind() rule.Kind {
	k := admissionKind("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings",
		validatingBindingRules(), rule.Printed(validatingBindingCells))
	k.Also = rule.OnDemand[admissionregistrationv1beta1.ValidatingAdmissionPolicyBinding](admissionregistrationV1beta1)
	return rule.Of[admissionregistrationv1.ValidatingAdmissionPolicyBinding](k)
}

func validatingBindingRules() *catalog.Strategy {
	return admissionStrategy(registration.DefaultBinding)
}

func validatingBindingCells(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding, e catalog.Env) []any {
	return []any{b.Name, b.Spec.PolicyName, paramRef(b.Spec.ParamRef), rule.Ago(b.CreationTimestamp, e)}
}

// validatingAdmissionPolicyBindingFunctions are the functions that validating_admission_policy_binding.txt names.
func validatingAdmissionPolicyBindingFunctions() rule.Functions {
	return rule.Functions{
		"validatingBinding": rule.Typed(registration.CheckValidatingBinding, nil),
	}
}
