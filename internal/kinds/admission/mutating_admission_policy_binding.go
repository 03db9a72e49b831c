package admission

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"

	"github.com/bowsprit/bowsprit/internal/admit/registration"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func mutatingBindingKind() rule.Kind {
	k := admissionKind("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", mutatingBindingRules(),
		rule.Printed(mutatingBindingCells))
	k.Form = storedAsBeta()
	k.Also = rule.OnDemand[admissionregistrationv1beta1.MutatingAdmissionPolicyBinding](admissionregistrationV1beta1)
	return rule.Of[admissionregistrationv1.MutatingAdmissionPolicyBinding](k)
}

func mutatingBindingRules() *catalog.Strategy {
	return admissionStrategy(registration.DefaultBinding)
}

func mutatingBindingCells(b *admissionregistrationv1.MutatingAdmissionPolicyBinding, e catalog.Env) []any {
	return []any{b.Name, b.Spec.PolicyName, paramRef(b.Spec.ParamRef), rule.Ago(b.CreationTimestamp, e)}
}

// mutatingAdmissionPolicyBindingFunctions are those that mutating_admission_policy_binding.txt names.
func mutatingAdmissionPolicyBindingFunctions() rule.Functions {
	return rule.Functions{
		"mutatingBinding": rule.Typed(registration.CheckMutatingBinding, nil),
	}
}
