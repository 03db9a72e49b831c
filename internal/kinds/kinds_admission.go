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
	return []kind{
		definitionKind(),
		mutatingWebhookKind(),
		validatingWebhookKind(),
		validatingPolicyKind(),
		validatingBindingKind(),
		mutatingPolicyKind(),
		mutatingBindingKind(),
	}
}

// admissionKind is what the kinds that configure admission have in common.
func admissionKind(name, plural string, rules *catalog.Strategy, cells func(catalog.Object, catalog.Env) []any) kind {
	rules.Cells = cells
	return kind{
		group: admissionregistrationV1, kind: name, plural: plural, categories: extends, clusterScoped: true,
		generation: true, rules: rules,
	}
}

func mutatingWebhookKind() kind {
	return of[admissionregistrationv1.MutatingWebhookConfiguration](admissionKind("MutatingWebhookConfiguration",
		"mutatingwebhookconfigurations", mutatingWebhookRules(), printed(mutatingWebhookCells)))
}

func validatingWebhookKind() kind {
	return of[admissionregistrationv1.ValidatingWebhookConfiguration](admissionKind("ValidatingWebhookConfiguration",
		"validatingwebhookconfigurations", validatingWebhookRules(), printed(validatingWebhookCells)))
}

func validatingPolicyKind() kind {
	k := admissionKind("ValidatingAdmissionPolicy", "validatingadmissionpolicies", validatingPolicyRules(),
		printed(validatingPolicyCells))
	k.status, k.statusOnly = true, true
	return of[admissionregistrationv1.ValidatingAdmissionPolicy](k)
}

func validatingBindingKind() kind {
	return of[admissionregistrationv1.ValidatingAdmissionPolicyBinding](
		admissionKind("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", validatingBindingRules(),
			printed(validatingBindingCells)))
}

func mutatingPolicyKind() kind {
	k := admissionKind("MutatingAdmissionPolicy", "mutatingadmissionpolicies", mutatingPolicyRules(),
		printed(mutatingPolicyCells))
	k.form = storedAsBeta()
	k.also = onDemand[admissionregistrationv1beta1.MutatingAdmissionPolicy](admissionregistrationV1beta1)
	return of[admissionregistrationv1.MutatingAdmissionPolicy](k)
}

func mutatingBindingKind() kind {
	k := admissionKind("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", mutatingBindingRules(),
		printed(mutatingBindingCells))
	k.form = storedAsBeta()
	k.also = onDemand[admissionregistrationv1beta1.MutatingAdmissionPolicyBinding](admissionregistrationV1beta1)
	return of[admissionregistrationv1.MutatingAdmissionPolicyBinding](k)
}

func storedAsBeta() *catalog.Form { return storedAs("admissionregistration.k8s.io", "v1", "v1beta1") }

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
