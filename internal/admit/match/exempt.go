package match

import "github.com/bowsprit/bowsprit/internal/api/catalog"

// ExemptFromPolicies reports whether stored policies do not apply to a resource: policies and their bindings, so that a
// client can repair a mistaken one.
func ExemptFromPolicies(r *catalog.Resource) bool {
	return r.Group == "admissionregistration.k8s.io" && isPolicy(r)
}

// IsReview reports whether a resource is a review of authentication or authorization, without which a cluster does not
// work. Policies do not apply to it, not even policies in files.
func IsReview(r *catalog.Resource) bool {
	return r.Virtual && (r.Group == "authentication.k8s.io" || r.Group == "authorization.k8s.io")
}

func isPolicy(r *catalog.Resource) bool {
	switch r.Kind {
	case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy",
		"MutatingAdmissionPolicyBinding":
		return true
	}
	return false
}

// ExemptFromWebhooks reports whether stored webhooks do not apply to a resource: the configuration of admission. As in
// Kubernetes, policies do apply to webhook configurations.
func ExemptFromWebhooks(r *catalog.Resource) bool {
	return r.Group == "admissionregistration.k8s.io" &&
		(isPolicy(r) || r.Kind == "ValidatingWebhookConfiguration" || r.Kind == "MutatingWebhookConfiguration")
}
