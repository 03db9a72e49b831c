package match

import "github.com/bowsprit/bowsprit/internal/api/catalog"

// ExemptFromPolicies reports whether no policy is asked about a resource: policies and their bindings, so that a
// mistake in one can be mended, and reviews of who a user is and what the user may do, without which a cluster does
// not work.
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

// ExemptFromWebhooks reports whether no webhook is asked about a resource: what configures admission. Policies are
// asked about the configurations of webhooks, as in Kubernetes.
func ExemptFromWebhooks(r *catalog.Resource) bool {
	return r.Group == "admissionregistration.k8s.io" &&
		(isPolicy(r) || r.Kind == "ValidatingWebhookConfiguration" || r.Kind == "MutatingWebhookConfiguration")
}
