package admission

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1alpha1 "k8s.io/api/admissionregistration/v1alpha1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"

	"github.com/bowsprit/bowsprit/internal/admit/registration"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func mutatingPolicyKind() rule.Kind {
	k := admissionKind("MutatingAdmissionPolicy", "mutatingadmissionpolicies", mutatingPolicyRules(),
		rule.Printed(mutatingPolicyCells))
	k.Also = slices.Concat(
		rule.OnDemand[admissionregistrationv1beta1.MutatingAdmissionPolicy](admissionregistrationV1beta1),
		rule.OnDemand[admissionregistrationv1alpha1.MutatingAdmissionPolicy](admissionregistrationV1alpha1))
	return rule.Of[admissionregistrationv1.MutatingAdmissionPolicy](k)
}

func mutatingPolicyRules() *catalog.Strategy {
	return admissionStrategy(registration.DefaultPolicy)
}

func mutatingPolicyCells(p *admissionregistrationv1.MutatingAdmissionPolicy, e catalog.Env) []any {
	return []any{p.Name, int64(len(p.Spec.Mutations)), paramKind(p.Spec.ParamKind), rule.Ago(p.CreationTimestamp, e)}
}

// mutatingAdmissionPolicyFunctions are the functions that mutating_admission_policy.txt names.
func mutatingAdmissionPolicyFunctions() rule.Functions {
	return rule.Functions{
		"mutatingPolicy": checked(registration.CheckMutatingPolicy),
	}
}
