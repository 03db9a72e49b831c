package admission

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1alpha1 "k8s.io/api/admissionregistration/v1alpha1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"

	"github.com/bowsprit/bowsprit/internal/admit/registration"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func mutatingBindingKind() rule.Kind {
	k := admissionKind("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", mutatingBindingRules(),
		rule.Printed(mutatingBindingCells))
	beta := rule.OnDemand[admissionregistrationv1beta1.MutatingAdmissionPolicyBinding](admissionregistrationV1beta1)
	alpha := rule.OnDemand[admissionregistrationv1alpha1.MutatingAdmissionPolicyBinding](admissionregistrationV1alpha1)
	alpha[0].Default = denyWithoutParameters
	k.Also = slices.Concat(beta, alpha)
	return rule.Of[admissionregistrationv1.MutatingAdmissionPolicyBinding](k)
}

// denyWithoutParameters sets parameterNotFoundAction to Deny in a binding without one. The other versions reject such a
// binding.
func denyWithoutParameters(obj object.Object) {
	if ref := object.Map(obj, "spec", "paramRef"); ref != nil {
		rule.SetDefault(ref, "parameterNotFoundAction", string(admissionregistrationv1.DenyAction))
	}
}

func mutatingBindingRules() *catalog.Strategy {
	return admissionStrategy(registration.DefaultBinding)
}

func mutatingBindingCells(b *admissionregistrationv1.MutatingAdmissionPolicyBinding, e catalog.Env) []any {
	return []any{b.Name, b.Spec.PolicyName, paramRef(b.Spec.ParamRef), rule.Ago(b.CreationTimestamp, e)}
}

// mutatingAdmissionPolicyBindingFunctions are the functions that mutating_admission_policy_binding.txt names.
func mutatingAdmissionPolicyBindingFunctions() rule.Functions {
	return rule.Functions{
		"mutatingBinding": rule.Typed(registration.CheckMutatingBinding, nil),
	}
}
