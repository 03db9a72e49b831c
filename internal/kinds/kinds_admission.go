package kinds

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd"
)

// admissionKinds are those that extend the API: apiextensions.k8s.io and admissionregistration.k8s.io.
func admissionKinds() []kind {
	base := kind{group: admissionregistrationV1, categories: extends, clusterScoped: true, generation: true}
	named := func(kind, plural string, rules *catalog.Strategy, cells func(catalog.Object, catalog.Env) []any) kind {
		k := base
		k.kind, k.plural, k.rules = kind, plural, rules
		k.rules.Cells = cells
		return k
	}
	policy := named("ValidatingAdmissionPolicy", "validatingadmissionpolicies", validatingPolicyRules(),
		printed(validatingPolicyCells))
	policy.status, policy.statusOnly = true, true
	mutatingPolicy := named("MutatingAdmissionPolicy", "mutatingadmissionpolicies", mutatingPolicyRules(),
		printed(mutatingPolicyCells))
	mutatingBinding := named("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings",
		mutatingBindingRules(), printed(mutatingBindingCells))
	mutatingPolicy.form = storedAs("admissionregistration.k8s.io", "v1", "v1beta1")
	mutatingBinding.form = mutatingPolicy.form
	mutatingPolicy.also = onDemand[admissionregistrationv1beta1.MutatingAdmissionPolicy](admissionregistrationV1beta1)
	mutatingBinding.also = onDemand[admissionregistrationv1beta1.MutatingAdmissionPolicyBinding](
		admissionregistrationV1beta1)
	return []kind{
		definitionKind(),
		of[admissionregistrationv1.MutatingWebhookConfiguration](named("MutatingWebhookConfiguration",
			"mutatingwebhookconfigurations", mutatingWebhookRules(), printed(mutatingWebhookCells))),
		of[admissionregistrationv1.ValidatingWebhookConfiguration](named("ValidatingWebhookConfiguration",
			"validatingwebhookconfigurations", validatingWebhookRules(), printed(validatingWebhookCells))),
		of[admissionregistrationv1.ValidatingAdmissionPolicy](policy),
		of[admissionregistrationv1.ValidatingAdmissionPolicyBinding](named("ValidatingAdmissionPolicyBinding",
			"validatingadmissionpolicybindings", validatingBindingRules(), printed(validatingBindingCells))),
		of[admissionregistrationv1.MutatingAdmissionPolicy](mutatingPolicy),
		of[admissionregistrationv1.MutatingAdmissionPolicyBinding](mutatingBinding),
	}
}

// definitionKind is CustomResourceDefinition. Its rules are those of package crd; it is printed like every kind that
// has no columns of its own.
func definitionKind() kind {
	rules := *crd.Rules()
	rules.Cells = nameAndCreation
	return kind{
		also: []*version{{
			name: "v1beta1", rank: 9, new: newOf[apiextensionsv1beta1.CustomResourceDefinition](),
			rules:      crd.BetaRules(&rules),
			deprecated: "apiextensions.k8s.io/v1beta1 CustomResourceDefinition is deprecated in v1.16+, unavailable in v1.22+; use apiextensions.k8s.io/v1 CustomResourceDefinition",
		}},
		convert: crd.Convert, form: crd.Form(),
		group: apiextensionsV1, kind: "CustomResourceDefinition", plural: "customresourcedefinitions",
		short: []string{"crd", "crds"}, categories: extends,
		clusterScoped: true, status: true, generation: true,
		prefix:  "apiextensions.k8s.io/customresourcedefinitions",
		new:     newOf[apiextensionsv1.CustomResourceDefinition](),
		columns: []catalog.Column{nameColumn(), createdColumn()},
		rules:   &rules,
	}
}
