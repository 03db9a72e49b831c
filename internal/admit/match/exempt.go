package match

import "github.com/bowsprit/bowsprit/internal/api/catalog"

// ExemptFromPolicies reports whether policies do not apply to a resource: policies and their bindings, so that a
// mistaken one can be repaired, and reviews of authentication and authorization, without which a cluster does not work.
func ExemptFromPolicies(r *catalog.Resource) bool {
	switch r.Group {
	case "admissionregistration.k8s.io":
		return isPolicy(r)
	case "authentication.k8s.io", "authorization.k8s.io":
		return r.Virtual
	}
	return false
}

func isPolicy(r *catalog.Resource) bool {
	switch r.Kind {
	case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy",
		"MutatingAdmissionPolicyBinding":
		return true
	}
	return false
}

// ExemptFromWebhooks reports whether webhooks do not apply to a resource: the configuration of admission. As in
// Kubernetes, policies do apply to webhook configurations.
func ExemptFromWebhooks(r *catalog.Resource) bool {
	return r.Group == "admissionregistration.k8s.io" &&
		(isPolicy(r) || r.Kind == "ValidatingWebhookConfiguration" || r.Kind == "MutatingWebhookConfiguration")
}
